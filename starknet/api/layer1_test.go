package api

import (
	"encoding/json"
	"fmt"
	"testing"

	"ashlar/starknet/query"
)

// TestPagesUpToL1Accepted: the first page fixes the range. A server that answers a later page may
// know of fewer blocks that are accepted on layer 1, or of none: another one of a cluster, or the
// same one after a restart.
func TestPagesUpToL1Accepted(t *testing.T) {
	blocks := next(made(7, 0), 20)
	n := newNetwork(t, blocks...)
	server := func(accepted uint64) *network {
		chain, in := query.NewChain(n.archive, noTip), *n
		if accepted > 0 {
			chain.SetL1Accepted(accepted)
		}
		in.methods = handlersOf(t, New(chain, Usual()))
		return &in
	}
	const accepted = 15
	before, upTo := 0, 0
	for _, b := range blocks[:accepted+1] {
		before, upTo = upTo, upTo+b.EventCount()
	}
	for filter, want := range map[string]int{`"to_block":"l1_accepted"`: upTo, `"from_block":"l1_accepted","to_block":{"block_number":15}`: upTo - before} {
		for _, later := range []uint64{accepted, accepted + 3, 6, 0} {
			asked, token, got := server(accepted), "", 0
			for {
				out, err := asked.ask(t, "starknet_getEvents", fmt.Sprintf(`[{%s,"chunk_size":1,"continuation_token":%q}]`, filter, token))
				var p page
				if err == nil {
					err = json.Unmarshal(out, &p)
				}
				if err != nil {
					t.Fatalf("%s, later %d: %v after %d events", filter, later, err, got)
				}
				if got += len(p.Events); p.Token == nil {
					break
				}
				asked, token = server(later), *p.Token
			}
			if got != want {
				t.Errorf("%s, later %d: %d events, want %d", filter, later, got, want)
			}
		}
	}
}
