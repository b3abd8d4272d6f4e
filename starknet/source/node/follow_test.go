package node

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/starknet"
	"ashlar/starknet/source/node/nodetest"
)

func TestCatchingUpIsBounded(t *testing.T) {
	blocks := makeChain(nil, 100, 60, 1)
	fake := nodetest.New(t, 10, blocks)
	fake.Mischief = func(http.ResponseWriter, nodetest.Question, []byte) bool {
		time.Sleep(rand.N(2 * time.Millisecond)) // so that responses overtake each other
		return false
	}
	for _, parallel := range []int{1, 3, 8} {
		options := optionsFor(fake)
		options.Parallel = parallel
		followTo(t, newNode(t, options), 100, nil, blocks)
		if most := fake.Most(); most > parallel {
			t.Errorf("%d concurrent requests, expected at most %d", most, parallel)
		}
	}
}

func TestFollowStartsAnywhere(t *testing.T) {
	blocks := makeChain(nil, 0, 20, 1)
	fake := nodetest.New(t, 10, blocks)
	followTo(t, newNode(t, optionsFor(fake)), 7, nil, blocks[7:])
	followTo(t, newNode(t, optionsFor(fake)), 0, blocks[3:9], blocks[3:])
	// The node has no blocks at first, then few, then more.
	fake = nodetest.New(t, 10, nil)
	fake.Mischief = func(_ http.ResponseWriter, q nodetest.Question, _ []byte) bool {
		if q.Nth%5 == 0 {
			fake.Set(blocks[:min(len(blocks), q.Nth/5)])
		}
		return false
	}
	followTo(t, newNode(t, optionsFor(fake)), 2, nil, blocks[2:])
}

// For all lengths of chain and fork, the node's branch is copied from the highest common block on,
// and no lower block is fetched again.
func TestReorganizations(t *testing.T) {
	old := makeChain(nil, 10, 40, 1)
	for _, fork := range []int{0, 1, 17, 37, 38} { // index of the last common block
		for _, length := range []int{1, 2, 38 - fork, 39 - fork, 45} { // of the new branch
			if length < 1 {
				continue
			}
			branch := append(slices.Clone(old[:fork+1]), makeChain(old[fork], 0, length, 2)...)
			fake := nodetest.New(t, 10, branch)
			kept := followTo(t, newNode(t, optionsFor(fake)), 0, old, branch)
			if len(kept.reverts) != 1 || kept.reverts[0] != old[fork].Ref() {
				t.Errorf("fork after index %d, %d new blocks: reverted to %v, expected %s", fork, length, kept.reverts, old[fork].Ref())
			}
			if asked := fake.Questions("starknet_getBlockWithTxHashes"); asked > 12 {
				t.Errorf("fork after index %d, %d new blocks: %d requests to find it, expected at most 12", fork, length, asked)
			}
		}
	}
}

// A node that is behind reverts nothing, until it has a different block.
func TestNodeBehindRevertsNothing(t *testing.T) {
	old := makeChain(nil, 10, 40, 1)
	branch := append(slices.Clone(old[:5]), makeChain(old[4], 0, 2, 2)...)
	fake := nodetest.New(t, 10, old[:5])
	kept := &keptChain{t: t, blocks: slices.Clone(old), until: branch[6].Ref().Hash}
	fake.Mischief = func(_ http.ResponseWriter, q nodetest.Question, _ []byte) bool {
		if q.Nth == 20 {
			if len(kept.reverts) > 0 {
				t.Error("blocks were reverted for a node that is behind")
			}
			fake.Set(branch)
		}
		return false
	}
	if err := newNode(t, optionsFor(fake)).Follow(t.Context(), 0, kept); !errors.Is(err, errArrived) {
		t.Fatal(err)
	}
	if len(kept.reverts) != 1 || kept.reverts[0] != old[4].Ref() {
		t.Errorf("reverted to %v, expected %s", kept.reverts, old[4].Ref())
	}
}

// The node's chain is reorganized repeatedly while it is followed.
func TestReorganizationsWhileFollowing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	current := makeChain(nil, 0, 10, 1)
	fake := nodetest.New(t, 10, current)
	branch := uint64(1)
	final := uint64(50)
	var mu sync.Mutex // guards current and branch
	fake.Mischief = func(_ http.ResponseWriter, q nodetest.Question, _ []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		if branch < final && q.Nth%7 == 0 {
			branch++
			keep := 1 + random.IntN(len(current))
			grown := makeChain(current[keep-1], 0, random.IntN(6), branch)
			if branch == final {
				grown = makeChain(current[keep-1], 0, 100, branch)
			}
			current = append(slices.Clone(current[:keep]), grown...)
			fake.Set(current)
		}
		return false
	}
	kept := &keptChain{t: t}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch := &watchedChain{keptChain: kept, arrivedAt: func() bool {
		mu.Lock()
		defer mu.Unlock()
		return branch == final && len(kept.blocks) == len(current) && kept.blocks[len(kept.blocks)-1].Hash == current[len(current)-1].Hash
	}, cancel: cancel}
	if err := newNode(t, optionsFor(fake)).Follow(ctx, 0, watch); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for i := range current {
		if kept.blocks[i].Hash != current[i].Hash {
			t.Fatalf("block %d is %s, expected %s", i, kept.blocks[i].Hash, current[i].Hash)
		}
	}
	if len(kept.reverts) == 0 {
		t.Error("no block was ever reverted")
	}
}

// watchedChain ends Follow when a condition holds.
type watchedChain struct {
	*keptChain
	arrivedAt func() bool
	cancel    context.CancelFunc
}

func (c *watchedChain) Append(ctx context.Context, b *starknet.Block) error {
	err := c.keptChain.Append(ctx, b)
	if c.arrivedAt() {
		c.cancel()
	}
	return err
}

func TestCancelEndsFollow(t *testing.T) {
	blocks := makeChain(nil, 0, 30, 1)
	for _, test := range []struct {
		name string
		do   func(w http.ResponseWriter, q nodetest.Question, release <-chan struct{}) bool
	}{
		{"at the head", func(http.ResponseWriter, nodetest.Question, <-chan struct{}) bool { return false }},
		{"in a pause", func(w http.ResponseWriter, q nodetest.Question, _ <-chan struct{}) bool {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}},
		{"while nothing comes", func(_ http.ResponseWriter, _ nodetest.Question, release <-chan struct{}) bool { <-release; return true }},
	} {
		fake := nodetest.New(t, 10, blocks)
		release := make(chan struct{})
		fake.Mischief = func(w http.ResponseWriter, q nodetest.Question, _ []byte) bool { return test.do(w, q, release) }
		options := optionsFor(fake)
		options.Poll, options.LongestPause, options.FirstPause = time.Hour, time.Hour, time.Hour
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- newNode(t, options).Follow(ctx, 0, &keptChain{t: t}) }()
		await.Until(t, "the first question", func() bool { return fake.Questions("starknet_blockHashAndNumber") > 0 })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("%s: Follow returned %v", test.name, err)
		}
		close(release)
	}
}
