// Package jsonrpctest describes the methods of tests.
package jsonrpctest

import (
	"context"
	"slices"

	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// Method describes a light method of one credit that reads no contract.
func Method(name string, handler jsonrpc.Handler) jsonrpc.Method {
	return jsonrpc.Method{
		Name: name, Summary: "Is called by tests.", Result: jsonrpc.Result{Name: "result", Schema: &schema.Schema{}},
		Cost: jsonrpc.Light(1), Concerns: jsonrpc.NoContract, Handler: handler,
	}
}

// Methods describes the methods that some handlers answer. It panics where that fails.
func Methods(handlers jsonrpc.Handlers) *jsonrpc.Methods {
	var all []jsonrpc.Method
	for name, handler := range handlers {
		all = append(all, Method(name, handler))
	}
	return must(jsonrpc.NewMethods(all...))
}

// With returns methods with another one, in place of the one that had its name.
func With(methods *jsonrpc.Methods, method jsonrpc.Method) *jsonrpc.Methods {
	var all []jsonrpc.Method
	for m := range methods.All() {
		all = append(all, *m)
	}
	all = slices.DeleteFunc(all, func(m jsonrpc.Method) bool { return m.Name == method.Name })
	return must(jsonrpc.NewMethods(append(all, method)...))
}

// Verification calls a method and returns how the answer is verified.
func Verification(ctx context.Context, method *jsonrpc.Method, params string) (jsonrpc.Verification, error) {
	weakest := verifier(method.Verified)
	_, err := method.Handler(context.WithValue(ctx, jsonrpc.VerifierKey{}, &weakest), []byte(params), nil)
	return jsonrpc.Verification(weakest), err
}

// verifier implements jsonrpc.Verifier.
type verifier jsonrpc.Verification

func (v *verifier) Weaken(to jsonrpc.Verification) { *v = min(*v, verifier(to)) }

func must(methods *jsonrpc.Methods, err error) *jsonrpc.Methods {
	if err != nil {
		panic(err)
	}
	return methods
}
