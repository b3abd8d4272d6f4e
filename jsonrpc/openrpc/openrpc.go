// Package openrpc describes the methods of a network in an OpenRPC document, which
// clients and tools read: every method with its parameters, result and errors, and with
// an example made of the network's own data.
package openrpc

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// Discover is the method that returns a network's document.
const Discover = "rpc.discover"

// version is that of the OpenRPC specification that documents follow.
const version = "1.3.2"

// maxAge is how old the examples of a document may become.
const maxAge = time.Minute

// Info is what a document says about the network.
type Info struct {
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version"` // of the program
}

// Document is the description of a network's methods, made anew when its examples have
// become old. It may be used from many goroutines at once.
type Document struct {
	info    Info
	methods *jsonrpc.Methods

	mu      sync.Mutex // held while the document is made, so that it is made once
	encoded []byte     // guarded by mu
	made    time.Time  // guarded by mu
}

// Describe returns the document of a network's methods and the methods with another one,
// rpc.discover, which returns that document.
func Describe(info Info, methods *jsonrpc.Methods) (*Document, *jsonrpc.Methods, error) {
	d := &Document{info: info}
	var err error
	d.methods, err = methods.With(jsonrpc.Method{
		Name: Discover, Summary: "Returns the OpenRPC document of the network.",
		Result: jsonrpc.Result{Name: "OpenRPC document", Schema: &schema.Schema{Type: "object"}},
		Cost:   jsonrpc.Light(20), Concerns: jsonrpc.NoContract,
		Handler: func(ctx context.Context, params, out []byte) ([]byte, error) {
			if err := jsonrpc.Arguments(params, nil, 0); err != nil {
				return out, err
			}
			encoded, err := d.JSON(ctx)
			return append(out, encoded...), err
		},
	})
	return d, d.methods, err
}

// JSON returns the document, which the caller must not change. It is at most a minute
// old.
func (d *Document) JSON(ctx context.Context) ([]byte, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.encoded != nil && time.Since(d.made) < maxAge {
		return d.encoded, nil
	}
	encoded, err := json.Marshal(d.describe(ctx))
	if err != nil {
		return nil, fmt.Errorf("encode OpenRPC document: %w", err)
	}
	if err := ctx.Err(); err != nil { // examples may be missing
		return nil, err
	}
	d.encoded, d.made = encoded, time.Now()
	return encoded, nil
}

// The objects of the specification.
type (
	document struct {
		OpenRPC    string     `json:"openrpc"`
		Info       Info       `json:"info"`
		Methods    []method   `json:"methods"`
		Components components `json:"components"`
	}
	components struct {
		Schemas map[string]any      `json:"schemas"`
		Errors  map[string]rpcError `json:"errors"`
	}
	method struct {
		Name      string       `json:"name"`
		Summary   string       `json:"summary"`
		Structure string       `json:"paramStructure"`
		Params    []descriptor `json:"params"`
		Result    descriptor   `json:"result"`
		Errors    []any        `json:"errors"`
		Links     []link       `json:"links,omitempty"`
		Examples  []pairing    `json:"examples,omitempty"`
		Credits   int          `json:"x-credits"` // unless the server is configured otherwise
		Stream    bool         `json:"x-stream,omitempty"`
	}
	descriptor struct {
		Name     string         `json:"name"`
		Summary  string         `json:"summary,omitempty"`
		Required bool           `json:"required,omitempty"`
		Schema   *schema.Schema `json:"schema"`
	}
	rpcError struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Data    any    `json:"data,omitempty"`
	}
	reference struct {
		Ref string `json:"$ref"`
	}
	link struct {
		Name   string            `json:"name"`
		Method string            `json:"method"`
		Params map[string]string `json:"params"`
	}
	pairing struct {
		Name   string    `json:"name"`
		Params []example `json:"params"`
	}
	example struct {
		Name  string `json:"name"`
		Value any    `json:"value"`
	}
)

// commonErrors are the errors of every method, by their names among the components.
func commonErrors() map[string]rpcError {
	return map[string]rpcError{
		"InvalidParams":  {Code: jsonrpc.CodeInvalidParams, Message: "invalid params"},
		"InternalError":  {Code: jsonrpc.CodeInternal, Message: "internal error"},
		"TimedOut":       {Code: jsonrpc.CodeTimeout, Message: "request timed out"},
		"NotAllowed":     {Code: jsonrpc.CodeForbidden, Message: "method not allowed: it is not available to this key, whose rules do not list it"},
		"TooLarge":       {Code: jsonrpc.CodeTooLarge, Message: "response too large"},
		"LimitExceeded":  {Code: jsonrpc.CodeLimitExceeded, Message: "request rate exceeded: the rate limit is 10 credits per second"},
		"ServerIsBusy":   {Code: jsonrpc.CodeLimitExceeded, Message: "the server is busy: try again later"},
		"MethodNotFound": {Code: jsonrpc.CodeMethodNotFound, Message: "the method does not exist/is not available"},
		"InvalidRequest": {Code: jsonrpc.CodeInvalidRequest, Message: "invalid request"},
		"ParseError":     {Code: jsonrpc.CodeParse, Message: "parse error"},
	}
}

// describe makes the document as it is now.
func (d *Document) describe(ctx context.Context) document {
	made := document{
		OpenRPC: version, Info: d.info,
		Components: components{Schemas: make(map[string]any), Errors: commonErrors()},
	}
	links := make(map[string][]link)
	named := make(map[string]*schema.Schema)
	for m := range d.methods.All() {
		m.Result.Schema.Collect(named)
		for _, p := range m.Params {
			p.Schema.Collect(named)
			if p.From != "" {
				links[p.From] = append(links[p.From], link{m.Name, m.Name, map[string]string{p.Name: "${result}"}})
			}
		}
	}
	for name, s := range named {
		made.Components.Schemas[name] = s.Definition()
	}
	for m := range d.methods.All() {
		described := describeMethod(ctx, m)
		described.Links = links[m.Name]
		made.Methods = append(made.Methods, described)
	}
	return made
}

func describeMethod(ctx context.Context, m *jsonrpc.Method) method {
	described := method{
		Name: m.Name, Summary: m.Summary, Structure: "by-position", Params: []descriptor{}, Credits: m.Cost.Credits, Stream: m.Stream,
		Result: descriptor{Name: m.Result.Name, Schema: m.Result.Schema},
	}
	if m.ByName {
		described.Structure = "either"
	}
	for _, p := range m.Params {
		described.Params = append(described.Params, descriptor{p.Name, p.Summary, p.Required, p.Schema})
	}
	for _, e := range m.Errors {
		described.Errors = append(described.Errors, rpcError{e.Code, e.Message, e.Data})
	}
	for _, name := range []string{"InvalidParams", "InternalError", "TimedOut", "NotAllowed", "TooLarge", "LimitExceeded", "ServerIsBusy"} {
		described.Errors = append(described.Errors, reference{"#/components/errors/" + name})
	}
	// A network without blocks has nothing to make examples of.
	if arguments, err := m.Example(ctx); err == nil {
		pair := pairing{Name: "on this network", Params: []example{}}
		for _, a := range arguments {
			pair.Params = append(pair.Params, example(a))
		}
		described.Examples = []pairing{pair}
	}
	return described
}
