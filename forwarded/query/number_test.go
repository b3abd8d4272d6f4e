package query

import "testing"

// The number is read as clients read it: whatever the white space, of repeated members the last, and
// no member of a nested object.
func TestNumberOf(t *testing.T) {
	for _, c := range []struct {
		answer string
		number uint64
		known  bool
	}{
		{`{"number":"0x10","hash":"0x00"}`, 16, true},
		{`{"blockNumber":"0x11","logs":[{"blockNumber":"0x11"}]}`, 17, true},
		{"{\n  \"blockNumber\" : \"0x11\"\n}", 17, true},
		{`{"extra":{"blockNumber":"0x1","number":"0x1"},"blockNumber":"0x11"}`, 17, true},
		{`{"text":"\"number\":\"0x1\"","number":"0x10"}`, 16, true},
		{`{"blockNumber":"0x1","blockNumber":"0x11"}`, 17, true},
		{`{"number":"0x1","blockNumber":"0x11","number":"0x2"}`, 17, true},
		{`{"blockNumber":"0x11","blockNumber":null}`, 0, false},
		{`{"blockNumber":null,"hash":"0x00"}`, 0, false}, // pending
		{`{"number":16}`, 0, false},
		{`[{"number":"0x10"}]`, 0, false},
		{`null`, 0, false},
	} {
		if number, known := NumberOf([]byte(c.answer)); known != c.known || known && number != c.number {
			t.Errorf("%s: %d, %t; expected %d, %t", c.answer, number, known, c.number, c.known)
		}
	}
}
