// Package eth describes the methods of Ethereum's JSON-RPC API that networks of more than one family answer:
// names, summaries, parameters, and what the results are. A family adds how it answers them, see [Own]. Package eth
// itself answers the methods that need no chain.
//
// Names of parameters and results are those of the [execution API's specification].
//
// [execution API's specification]: https://github.com/ethereum/execution-apis
package eth

import (
	"context"
	"slices"

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

// Own is what a family has of its own for a method. It takes the place of what the description says, where it is not
// zero.
type Own struct {
	Handler  jsonrpc.Handler
	Cost     jsonrpc.Cost
	Errors   []*jsonrpc.Error
	Concerns jsonrpc.Concerns
	Params   []jsonrpc.Param
	Result   *schema.Schema
	// ExampleFails is as in [jsonrpc.Method].
	ExampleFails string
}

// Method returns the description of a method with what is a family's own. [jsonrpc.NewMethods] refuses a method
// whose name is not described here, as it has no summary.
func (d *Description) Method(name string, own Own) jsonrpc.Method {
	m := d.methods[name]
	m.Name, m.Params = name, slices.Clone(m.Params)
	if own.Handler != nil {
		m.Handler = own.Handler
	}
	if own.Cost != (jsonrpc.Cost{}) {
		m.Cost = own.Cost
	}
	if own.Errors != nil {
		m.Errors = own.Errors
	}
	if own.Concerns != nil {
		m.Concerns = own.Concerns
	}
	if own.Params != nil {
		m.Params = own.Params
	}
	if own.Result != nil {
		m.Result.Schema = own.Result
	}
	if own.ExampleFails != "" {
		m.ExampleFails = own.ExampleFails
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
