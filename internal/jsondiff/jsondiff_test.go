package jsondiff

import (
	"fmt"
	"testing"
)

func TestDifferences(t *testing.T) {
	tests := []struct{ a, b, values, shapes string }{
		{`{"x":1,"y":[true,null]}`, `{"y":[true,null],"x":1}`, `[]`, `[]`},
		{`{"x":"0x1"}`, `{"x":"0x2"}`, `[.x: "0x1" against "0x2"]`, `[]`},
		{`{"x":"0x1"}`, `{}`, `[.x: "0x1" against nothing]`, `[.x: "0x1" against nothing]`},
		{`{}`, `{"x":null}`, `[.x: nothing against null]`, `[.x: nothing against null]`},
		{`[1,2]`, `[1]`, `[the whole: [1,2] against [1]]`, `[]`},
		{`[{"a":"x"}]`, `[{"a":"y"},{"b":"z"}]`, `[the whole: [{"a":"x"}] against [{"a":"y"},{"b":"z"}]]`,
			`[[1].a: "x" against nothing [1].b: nothing against "z"]`},
		{`{"r":[{"s":1},{"s":2}]}`, `{"r":[{"s":1},{"s":3}]}`, `[.r[1].s: 2 against 3]`, `[]`},
		{`12345678901234567890`, `12345678901234567891`, `[the whole: 12345678901234567890 against 12345678901234567891]`, `[]`},
		{`"0x"`, `null`, `[the whole: "0x" against null]`, `[the whole: "0x" against null]`},
	}
	for _, test := range tests {
		a, err := Decode([]byte(test.a))
		if err != nil {
			t.Fatal(err)
		}
		b, err := Decode([]byte(test.b))
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(Values(a, b)); got != test.values {
			t.Errorf("values of %s and %s: got %s, want %s", test.a, test.b, got, test.values)
		}
		if got := fmt.Sprint(Shapes(a, b)); got != test.shapes {
			t.Errorf("shapes of %s and %s: got %s, want %s", test.a, test.b, got, test.shapes)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, raw := range []string{``, `{`, `{} {}`, `0x1`} {
		if _, err := Decode([]byte(raw)); err == nil {
			t.Errorf("%q was accepted", raw)
		}
	}
}
