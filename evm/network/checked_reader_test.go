package network

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/internal/await"
	"ashlar/kv"
)

// noted is a store with a board, which refuses posts once refused is set.
type noted struct {
	kv.Store
	mu      sync.Mutex
	posts   map[string][]byte
	refused error
}

func (s *noted) Post(_ context.Context, name string, value []byte, _ time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refused == nil {
		s.posts[name] = value
	}
	return s.refused
}

func (s *noted) Posts(context.Context) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.posts), nil
}

func (s *noted) refuse(err error) (notes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
	return len(s.posts)
}

// TestCheckedReaderHasANote: a reader of a network that executes nothing answers from stored blocks, too. So a rewind must be able
// to wait for its note, and it answers nothing once it cannot renew that.
func TestCheckedReaderHasANote(t *testing.T) {
	genesis, blocks, receipts := manyBlocks(t)
	node := startNode(t, genesis, receipts, blocks)
	store := &noted{Store: ingesttest.Store(t), posts: make(map[string][]byte)}
	importBlocks(t, store, genesis, blocks[1:len(blocks)/2])
	s := serveStored(t, store, &Entries{Upstream: nodesOf(node), Quorum: 1}, true)
	s.await(blocks[len(blocks)-1])
	refused := errors.New("refused")
	if notes := store.refuse(refused); notes != 1 {
		t.Errorf("%d notes, want 1", notes)
	}
	await.Until(t, "no answers", func() bool {
		_, err := s.try(new(string), "eth_getBalance", `["0x0000000000000000000000000000000000000001","0x1"]`)
		if err != nil && !errors.Is(err, refused) {
			t.Fatal(err)
		}
		return err != nil
	})
}
