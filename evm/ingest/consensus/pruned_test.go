package consensus_test

import (
	"encoding/json"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/ingest"
	"ashlar/evm/source/engine"
	"ashlar/jsonrpc"
)

// Blocks older than a window are null in their places. An answer without them would look as if
// the head was below the first block that was asked for.
func TestBodiesBelowTheWindow(t *testing.T) {
	b := builder(t)
	blocks := b.grow(b.Genesis, 6, 0)
	d := newDriven(t, ingest.Depths{Unfinalized: 1, Most: 1})
	for _, block := range blocks {
		d.send(block)
	}
	d.mustTell(blocks[5], nil, nil)
	d.settle(5)
	if err := d.Archive.SetFirst(t.Context(), archive.Extent{Blocks: 4, State: 4, Tries: 4}); err != nil {
		t.Fatal(err)
	}
	methods := engine.New(engine.Config{Chain: d.chain, Rules: d.Executor.Config()}).Methods()
	answer := jsonrpc.NewServer(methods, jsonrpc.Config{}).Answer(t.Context(),
		[]byte(`{"jsonrpc":"2.0","id":1,"method":"engine_getPayloadBodiesByRangeV1","params":["0x2","0x20"]}`), nil)
	var got struct {
		Result []*struct{ Withdrawals []any }
	}
	if err := json.Unmarshal(answer, &got); err != nil {
		t.Fatal(err)
	}
	if len(got.Result) != 5 {
		t.Fatalf("blocks 2 to 6 are answered with %s", answer)
	}
	for i, body := range got.Result {
		if number := i + 2; (body != nil) != (number >= 4) {
			t.Errorf("block %d is %v", number, body)
		}
	}
}
