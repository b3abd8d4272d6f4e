package node

import (
	"context"
	"net/http"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/starknet"
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

// notifying is a chain that says which block was appended.
type notifying struct {
	*keptChain
	appended chan uint64
}

func (c notifying) Append(ctx context.Context, block *starknet.Block) error {
	err := c.keptChain.Append(ctx, block)
	c.appended <- block.Number
	return err
}

// TestGroupWithheldByOne: a node that agrees and does not send its blocks is not asked for them again while others send them.
func TestGroupWithheldByOne(t *testing.T) {
	const blocks = 4
	main := makeChain(nil, 0, blocks, 1)
	fakes := []*nodetest.Node{nodetest.New(t, 10, main[:1]), nodetest.New(t, 10, main[:1]), nodetest.New(t, 10, main[:1])}
	silent, end := fakes[0], make(chan struct{})
	defer close(end)
	silent.Mischief = func(_ http.ResponseWriter, q nodetest.Question, _ []byte) bool {
		if q.Method == "starknet_getBlockWithReceipts" {
			<-end
		}
		return false
	}
	options := optionsFor(silent)
	options.Poll, options.Timeout = 100*time.Millisecond, 2*time.Second
	g, err := NewGroup([]string{silent.URL, fakes[1].URL, fakes[2].URL}, 2, options)
	if err != nil {
		t.Fatal(err)
	}
	kept := notifying{&keptChain{t: t, until: common.Hash(main[blocks-1].Hash)}, make(chan uint64, blocks)}
	ended := make(chan error, 1)
	go func() { ended <- g.Follow(t.Context(), 0, kept) }()
	for next := 1; <-kept.appended < blocks-1; next++ {
		before := silent.Questions("starknet_blockHashAndNumber")
		await.Until(t, "the silent node to be asked for its head again", func() bool {
			return silent.Questions("starknet_blockHashAndNumber") > before
		})
		for _, fake := range fakes {
			fake.Set(main[:next+1])
		}
	}
	if err := <-ended; err != errArrived {
		t.Fatal(err)
	}
	if asked := silent.Questions("starknet_getBlockWithReceipts"); asked > blocks/2 { // on a busy machine also when another one was late
		t.Errorf("the silent node was asked for blocks %d times, expected once", asked)
	}
}
