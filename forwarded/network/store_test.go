package network

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"ashlar/forwarded/forwardtest"
	"ashlar/kv"
)

// fullStore is a store that may refuse writes.
type fullStore struct {
	kv.Store
	full atomic.Bool
}

func (s *fullStore) Write(ctx context.Context, b kv.Batch) error {
	if s.full.Load() {
		return errors.New("the disk is full")
	}
	return s.Store.Write(ctx, b)
}

// A store that refuses writes keeps no answers, and nothing else.
func TestFullStore(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 100, Final: 90, LogsPer: 1})
	store := &fullStore{Store: newStore(t)}
	w := serve(t, store, nil, n)
	w.atHead(100)
	w.until("the final block is known", func() bool { return w.call("eth_getBlockByNumber", `["finalized",false]`)[0] == '{' })
	for _, full := range []bool{true, false, false} {
		store.full.Store(full)
		w.expect("eth_getBlockByNumber", `["0x5",false]`, `…"number":"0x5"`)
		w.expect("eth_getLogs", `[{"fromBlock":"0x5","toBlock":"0x6"}]`, `…"blockNumber":"0x6"`)
	}
	if asked := n.Count("eth_getLogs"); asked != 2 {
		t.Errorf("asked %d times for the logs, want 2: the second answer is kept", asked)
	}
}
