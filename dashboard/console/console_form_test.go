package console

import (
	"testing"

	"ashlar/dashboard/site"
	"ashlar/jsonrpc/schema"
)

// A typed value is encoded as JSON of the type in its schema.
func TestTypedValues(t *testing.T) {
	number := schema.Text("Number", "", "0x[0-9a-f]+")
	block := schema.AnyOf(number, schema.Enum("latest"), schema.Object(nil, schema.Members{"blockHash": schema.String}))
	for _, c := range []struct {
		s           *schema.Schema
		typed, want string
	}{
		{number, "0x10", `"0x10"`}, {number, "16", `"0x10"`}, {number, " ", ""}, {number, "sixteen", `"sixteen"`},
		{block, "latest", `"latest"`}, {block, "16", `"0x10"`}, {block, `{"blockHash":"0x1"}`, `{"blockHash":"0x1"}`},
		{schema.Unsigned, "16", `16`}, {schema.Unsigned, "0x10", "?"}, {schema.Boolean, "true", `true`}, {schema.Boolean, "yes", "?"},
		{schema.OrNull(schema.String), "null", `null`}, {schema.String, "null", `"null"`}, {schema.String, `say "x"`, `"say \"x\""`},
		{schema.Array(number), `["0x1"]`, `["0x1"]`}, {schema.Array(number), `["0x1"`, "?"}, {schema.Any, "16", `16`},
	} {
		f := &site.Field{Value: c.typed}
		got := string(encoded(f, c.s))
		if f.Problem != "" {
			got = "?"
		}
		if got != c.want {
			t.Errorf("%q as %s is %q, expected %q", c.typed, site.TypeName(c.s), got, c.want)
		}
	}
}
