package jsonrpc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"ashlar/jsonrpc/schema"
)

// Method describes a method completely. Dispatch, credits, the rules of keys, the console,
// the documents and OpenRPC all read this description.
type Method struct {
	Name    string // such as "eth_getBalance"
	Summary string // what it does, in one sentence
	Params  []Param
	ByName  bool // params may be an object as well as an array
	Result  Result
	Errors  []*Error // specific to the method, in addition to those of every method

	Handler  Handler
	Cost     Cost
	Concerns Concerns
	// Verified is how the results of the method are verified, unless its handler calls
	// [Weaken].
	Verified Verification
	// ExampleFails is why a call with the example is answered with an error; empty if it is
	// answered with a result.
	ExampleFails string
	// Stream says that the method needs a persistent connection.
	Stream bool
}

// Param describes a parameter. Required parameters come first.
type Param struct {
	Name     string
	Summary  string
	Schema   *schema.Schema
	Required bool
	// Example returns a value that fits the network's present data. Nil omits this
	// parameter and all later ones from the example.
	Example func(ctx context.Context) (any, error)
	// From names the method whose result is the value of this parameter (such as a filter
	// ID), if no value can be known in advance.
	From string
}

// Result describes a result.
type Result struct {
	Name   string
	Schema *schema.Schema
}

// Given returns an example that is the same on every network.
func Given(value any) func(context.Context) (any, error) {
	return func(context.Context) (any, error) { return value, nil }
}

// Cost is the price of a call in credits, proportional to the resources it uses compared
// with reading one value, and its weight.
type Cost struct {
	Credits int
	Weight  Weight
}

// Weight selects the queue in which the calls of a method wait.
type Weight uint8

const (
	_ Weight = iota // missing: every method must set it
	// LightWeight is for calls that end soon.
	LightWeight
	// HeavyWeight is for calls that can each keep a processor busy for a long time.
	HeavyWeight
	// WaitingWeight is for calls that end soon once another server has answered, which may take long.
	WaitingWeight
	// RecomputingWeight is for calls that wait for other servers, too, and whose answers keep a processor busy, see limit.Work.
	RecomputingWeight
)

// Light returns the cost of a light method.
func Light(credits int) Cost { return Cost{credits, LightWeight} }

// Heavy returns the cost of a heavy method.
func Heavy(credits int) Cost { return Cost{credits, HeavyWeight} }

// Waiting returns the cost of a method that another server answers.
func Waiting(credits int) Cost { return Cost{credits, WaitingWeight} }

// Recomputing returns the cost of a method that another server answers, and whose answers are recomputed.
func Recomputing(credits int) Cost { return Cost{credits, RecomputingWeight} }

// UsualCredits is the price of reading one value. The configuration can change the price of
// all methods with this cost.
const UsualCredits = 10

// Methods is an immutable set of methods.
type Methods struct {
	byName map[string]*Method
	sorted []*Method // by name
}

// NewMethods returns a set of methods. It fails if a description is incomplete or a name
// occurs twice.
func NewMethods(methods ...Method) (*Methods, error) {
	m := &Methods{byName: make(map[string]*Method, len(methods))}
	for i := range methods {
		method := methods[i]
		if err := method.check(); err != nil {
			return nil, fmt.Errorf("describe method %q: %w", method.Name, err)
		}
		if m.byName[method.Name] != nil {
			return nil, fmt.Errorf("describe method %q: described twice", method.Name)
		}
		m.byName[method.Name] = &method
		m.sorted = append(m.sorted, &method)
	}
	slices.SortFunc(m.sorted, func(a, b *Method) int { return strings.Compare(a.Name, b.Name) })
	for _, method := range m.sorted {
		for _, p := range method.Params {
			if p.From != "" && m.byName[p.From] == nil {
				return nil, fmt.Errorf("describe method %q: parameter %s comes from the unknown method %q", method.Name, p.Name, p.From)
			}
		}
	}
	return m, nil
}

// check returns an error if a description is incomplete.
func (m *Method) check() error {
	switch {
	case m.Name == "":
		return errors.New("missing name")
	case m.Summary == "":
		return errors.New("missing summary")
	case m.Result.Name == "" || m.Result.Schema == nil:
		return errors.New("missing result")
	case m.Handler == nil:
		return errors.New("missing handler")
	case m.Cost.Credits < 1 || m.Cost.Weight == 0:
		return errors.New("missing cost (want jsonrpc.Light, Heavy, Waiting or Recomputing, of at least 1 credit)")
	case m.Concerns == nil:
		return errors.New("missing concerns (want jsonrpc.NoContract, jsonrpc.AnyContract or a function)")
	}
	for i, p := range m.Params {
		switch {
		case p.Name == "" || p.Schema == nil:
			return fmt.Errorf("missing name or schema of parameter %d", i)
		case p.Required && i > 0 && !m.Params[i-1].Required:
			return fmt.Errorf("required parameter %s follows an optional one", p.Name)
		case p.Required && p.Example == nil && p.From == "":
			return fmt.Errorf("missing example of parameter %s", p.Name)
		}
	}
	return nil
}

// Find returns the method with a name, or nil.
func (m *Methods) Find(name string) *Method { return m.byName[name] }

// All yields every method, sorted by name.
func (m *Methods) All() iter.Seq[*Method] { return slices.Values(m.sorted) }

// Names returns the name of every method, sorted.
func (m *Methods) Names() []string {
	names := make([]string, len(m.sorted))
	for i, method := range m.sorted {
		names[i] = method.Name
	}
	return names
}

// Len returns the number of methods.
func (m *Methods) Len() int { return len(m.sorted) }

// Handlers returns the handler of every method.
func (m *Methods) Handlers() Handlers {
	handlers := make(Handlers, len(m.sorted))
	for _, method := range m.sorted {
		handlers[method.Name] = method.Handler
	}
	return handlers
}

// With returns these methods and one more.
func (m *Methods) With(more Method) (*Methods, error) {
	all := make([]Method, 0, len(m.sorted)+1)
	for _, method := range m.sorted {
		all = append(all, *method)
	}
	return NewMethods(append(all, more)...)
}

// After returns the methods with handlers that call ready first, see [Handler.After].
func (m *Methods) After(ready func(context.Context) error) (*Methods, error) {
	all := make([]Method, 0, len(m.sorted))
	for _, method := range m.sorted {
		after := *method
		after.Handler = method.Handler.After(ready)
		all = append(all, after)
	}
	return NewMethods(all...)
}

// Argument is a parameter with its value.
type Argument struct {
	Name  string
	Value any // encodable by encoding/json
}

// Example returns arguments with which a call succeeds on the network in its present state.
// It stops before the first parameter without an example. A value that must come from
// another method is replaced by a text that says so.
func (m *Method) Example(ctx context.Context) ([]Argument, error) {
	arguments := []Argument{}
	for _, p := range m.Params {
		if p.From != "" {
			arguments = append(arguments, Argument{p.Name, ResultOf(p.From)})
			continue
		}
		if p.Example == nil {
			break
		}
		value, err := p.Example(ctx)
		if err != nil {
			return nil, fmt.Errorf("example of %s: %s: %w", m.Name, p.Name, err)
		}
		arguments = append(arguments, Argument{p.Name, value})
	}
	return arguments, nil
}

// ResultOf returns the text that stands for the result of a method in an example.
func ResultOf(method string) string { return "the result of " + method }

// ExampleParams returns the example as the params of a request: an object for a method
// that takes its parameters by name, else an array.
func (m *Method) ExampleParams(ctx context.Context) (json.RawMessage, error) {
	arguments, err := m.Example(ctx)
	if err != nil {
		return nil, err
	}
	if m.ByName {
		members := make(map[string]any, len(arguments))
		for _, a := range arguments {
			members[a.Name] = a.Value
		}
		return json.Marshal(members)
	}
	values := make([]any, len(arguments))
	for i, a := range arguments {
		values[i] = a.Value
	}
	return json.Marshal(values)
}
