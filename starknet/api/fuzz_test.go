package api

import (
	"encoding/json"
	"slices"
	"testing"
)

// FuzzGetEvents looks for parameters that make rollup_getEvents panic, answer with what
// is no page, or fail with what is none of its errors.
func FuzzGetEvents(f *testing.F) {
	n := newNetwork(f, next(made(1, 100), 8)...)
	f.Add([]byte(`{"filter":{"from_block":{"block_number":101},"to_block":"latest","keys":[["0x1"],[],null],"chunk_size":3}}`))
	f.Add([]byte(`[{"from_block":{"block_hash":"0x5"},"to_block":null,"address":"0x04c0","keys":["0x1"],"chunk_size":1024,"continuation_token":""}]`))
	p, err := n.pageOf(f, "", 2, "")
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"filter":{"chunk_size":2,"continuation_token":"` + *p.Token + `"}}`))
	f.Fuzz(func(t *testing.T, params []byte) {
		if !json.Valid(params) { // which is not passed on
			return
		}
		out, err := n.methods["rollup_getEvents"](t.Context(), params, nil)
		if err != nil {
			if !slices.Contains([]int{24, 31, 33, 34, -32602}, code(err)) {
				t.Fatalf("%s: %v", params, err)
			}
			return
		}
		var got page
		if err := json.Unmarshal(out, &got); err != nil || got.Token != nil && len(got.Events) == 0 {
			t.Fatalf("%s: %s", params, out)
		}
	})
}
