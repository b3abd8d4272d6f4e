// Package eth describes the methods of Ethereum's JSON-RPC API that networks of more than one family answer:
// names, summaries, parameters, and what the results are. A family adds how it answers them, see [Answer].
//
// Names of parameters and results are those of the [execution API's specification].
//
// [execution API's specification]: https://github.com/ethereum/execution-apis
package eth

import (
	"context"

	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// Description describes methods with examples of one network. It does not change.
type Description struct {
	Parameters
	methods map[string]jsonrpc.Method
}

// Describe describes the methods with examples of a network.
func Describe(examples Examples) *Description {
	d := &Description{Parameters: describeParameters(&examples), methods: make(map[string]jsonrpc.Method)}
	for _, methods := range [][]jsonrpc.Method{
		d.network(), d.blocks(), d.transactions(&examples), d.state(), d.calls(&examples), d.fees(), d.logs(&examples),
	} {
		for _, method := range methods {
			d.methods[method.Name] = method
		}
	}
	return d
}

// Answer is what a family adds to the description of a method. A zero member leaves what the description says.
type Answer struct {
	Handler  jsonrpc.Handler
	Cost     jsonrpc.Cost
	Errors   []*jsonrpc.Error
	Concerns jsonrpc.Concerns
	Params   []jsonrpc.Param
	Result   *schema.Schema
	// ExampleFails is as in [jsonrpc.Method].
	ExampleFails string
}

// Method returns the description of a method with a family's answer. [jsonrpc.NewMethods] refuses a method
// whose name is not described here, as it has no summary.
func (d *Description) Method(name string, a Answer) jsonrpc.Method {
	m := d.methods[name]
	m.Name = name
	if a.Handler != nil {
		m.Handler = a.Handler
	}
	if a.Cost != (jsonrpc.Cost{}) {
		m.Cost = a.Cost
	}
	if a.Errors != nil {
		m.Errors = a.Errors
	}
	if a.Concerns != nil {
		m.Concerns = a.Concerns
	}
	if a.Params != nil {
		m.Params = a.Params
	}
	if a.Result != nil {
		m.Result.Schema = a.Result
	}
	if a.ExampleFails != "" {
		m.ExampleFails = a.ExampleFails
	}
	return m
}

// Required describes a parameter that must be given.
func Required(name, summary string, s *schema.Schema, example Example) jsonrpc.Param {
	return jsonrpc.Param{Name: name, Summary: summary, Schema: s, Required: true, Example: example}
}

// Optional returns a copy of a parameter that may be omitted.
func Optional(p jsonrpc.Param) jsonrpc.Param {
	p.Required = false
	return p
}

// Result describes a result.
func Result(name string, s *schema.Schema) jsonrpc.Result {
	return jsonrpc.Result{Name: name, Schema: s}
}

// Example returns a value that fits the network's present data.
type Example = func(context.Context) (any, error)
