package node

import (
	"context"
	"net/http"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/starknet/source/node/nodetest"

	"github.com/ethereum/go-ethereum/common"
)

// Nodes that agree on a head and do not send its blocks are no agreement, from the first attempt
// to fetch them until one succeeds.
func TestGroupWithheldBlocks(t *testing.T) {
	main := makeChain(nil, 0, 12, 1)
	var urls []string
	withhold := make(chan struct{})
	for range 2 {
		fake := nodetest.New(t, 10, main)
		fake.Mischief = func(w http.ResponseWriter, q nodetest.Question, _ []byte) bool {
			select {
			case <-withhold:
				return false
			default:
			}
			if q.Method == "starknet_getBlockWithReceipts" {
				http.Error(w, "overloaded", http.StatusServiceUnavailable)
				return true
			}
			return false
		}
		urls = append(urls, fake.URL)
	}
	options := optionsFor(nodetest.New(t, 10, main))
	options.Poll, options.Timeout = 20*time.Millisecond, 2*time.Second // of an attempt; a slow machine needs a part of it for one that succeeds
	g, err := NewGroup(urls, 2, options)
	if err != nil {
		t.Fatal(err)
	}
	kept := &keptChain{t: t, until: common.Hash(main[11].Hash)}
	ended := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	go func() { ended <- g.Follow(ctx, 0, kept) }()
	await.Until(t, "an attempt that fails", func() bool { return !g.Status().Since.IsZero() })
	first := g.Status()
	for end := time.Now().Add(2 * options.Timeout); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if s := g.Status(); s.Agreement.Nodes > 0 || !s.Since.Equal(first.Since) {
			t.Fatalf("%d nodes agree, without agreement since %s, first %s", s.Agreement.Nodes, s.Since, first.Since)
		}
	}
	close(withhold)
	if err := <-ended; err != errArrived {
		t.Fatal(err)
	}
	if s := g.Status(); s.Agreement.Nodes != 2 || !s.Since.IsZero() {
		t.Errorf("the status is %+v", s.Agreement)
	}
}
