package jsonrpc_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"ashlar/jsonrpc"
	"ashlar/jsonrpc/jsonrpctest"
	"ashlar/jsonrpc/schema"
)

func nothing(_ context.Context, _, out []byte) ([]byte, error) { return append(out, "null"...), nil }

// TestMethodsAreWhole: an incomplete description is rejected, and the error names the
// missing part.
func TestMethodsAreWhole(t *testing.T) {
	whole := jsonrpctest.Method("test_whole", nothing)
	value := jsonrpc.Param{Name: "value", Schema: schema.String, Required: true, Example: jsonrpc.Given("x")}
	for _, c := range []struct {
		want   string
		change func(*jsonrpc.Method)
	}{
		{"missing name", func(m *jsonrpc.Method) { m.Name = "" }},
		{"missing summary", func(m *jsonrpc.Method) { m.Summary = "" }},
		{"missing result", func(m *jsonrpc.Method) { m.Result = jsonrpc.Result{} }},
		{"missing handler", func(m *jsonrpc.Method) { m.Handler = nil }},
		{"missing cost", func(m *jsonrpc.Method) { m.Cost = jsonrpc.Cost{} }},
		{"missing cost", func(m *jsonrpc.Method) { m.Cost = jsonrpc.Cost{Credits: 10} }},
		{"missing cost", func(m *jsonrpc.Method) { m.Cost = jsonrpc.Light(0) }},
		{"missing concerns", func(m *jsonrpc.Method) { m.Concerns = nil }},
		{"missing name or schema of parameter 0", func(m *jsonrpc.Method) { m.Params = []jsonrpc.Param{{Name: "value"}} }},
		{"missing example of parameter value", func(m *jsonrpc.Method) {
			m.Params = []jsonrpc.Param{{Name: "value", Schema: schema.String, Required: true}}
		}},
		{"required parameter value follows an optional one", func(m *jsonrpc.Method) {
			m.Params = []jsonrpc.Param{{Name: "other", Schema: schema.String}, value}
		}},
		{`comes from the unknown method "test_none"`, func(m *jsonrpc.Method) {
			m.Params = []jsonrpc.Param{{Name: "value", Schema: schema.String, Required: true, From: "test_none"}}
		}},
	} {
		broken := whole
		c.change(&broken)
		_, err := jsonrpc.NewMethods(whole, jsonrpctest.Method("test_other", nothing), broken)
		if broken.Name == whole.Name {
			_, err = jsonrpc.NewMethods(jsonrpctest.Method("test_other", nothing), broken)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), `"`+broken.Name+`"`) {
			t.Errorf("%v, want %q of %q", err, c.want, broken.Name)
		}
	}
	if _, err := jsonrpc.NewMethods(whole, whole); err == nil || !strings.Contains(err.Error(), `"test_whole": described twice`) {
		t.Errorf("two methods of one name: %v", err)
	}
}

// TestExampleParams: an example stops before the first parameter without one, and is an
// object if parameters are passed by name.
func TestExampleParams(t *testing.T) {
	m := jsonrpctest.Method("test_example", nothing)
	m.Params = []jsonrpc.Param{
		{Name: "a", Schema: schema.String, Required: true, Example: jsonrpc.Given("x")},
		{Name: "b", Schema: schema.Unsigned, Example: jsonrpc.Given(2)},
		{Name: "c", Schema: schema.Unsigned},
		{Name: "d", Schema: schema.Unsigned, Example: jsonrpc.Given(4)},
	}
	for byName, want := range map[bool]string{false: `["x",2]`, true: `{"a":"x","b":2}`} {
		m.ByName = byName
		if got, err := m.ExampleParams(t.Context()); err != nil || string(got) != want {
			t.Errorf("%s %v, want %s", got, err, want)
		}
	}
	failure := errors.New("no block")
	m.Params[1].Example = func(context.Context) (any, error) { return nil, failure }
	if _, err := m.ExampleParams(t.Context()); !errors.Is(err, failure) {
		t.Errorf("%v, want %v", err, failure)
	}
}
