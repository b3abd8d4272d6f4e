package node

import (
	"context"
	"errors"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/starknet"
	"ashlar/starknet/source/node/nodetest"

	"github.com/ethereum/go-ethereum/common"
)

func newGroup(t *testing.T, quorum int, fakes ...*nodetest.Node) *Group {
	t.Helper()
	var urls []string
	for _, fake := range fakes {
		urls = append(urls, fake.URL)
	}
	options := optionsFor(fakes[0])
	options.Poll = 5 * time.Second // also the time for the votes of the others once there is a quorum, which a busy machine may need
	g, err := NewGroup(urls, quorum, options)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// copyTo follows a group until it has the last of the wanted blocks, and compares the chains.
func copyTo(t *testing.T, g *Group, held, want []*starknet.Block) *keptChain {
	t.Helper()
	kept := &keptChain{t: t, until: common.Hash(want[len(want)-1].Hash), blocks: slices.Clone(held)}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := g.Follow(ctx, want[0].Number, kept); !errors.Is(err, errArrived) {
		t.Fatalf("Follow returned %v before it was complete: %+v", err, g.Status())
	}
	if !slices.EqualFunc(kept.blocks, want, func(a, b *starknet.Block) bool { return a.Hash == b.Hash }) {
		t.Fatalf("%d blocks are held, expected others, %d of them", len(kept.blocks), len(want))
	}
	return kept
}

// Two of three nodes decide, whatever the third one has: nothing, another branch, a longer
// chain, or no answers. A node that is behind does not hold the head back.
func TestGroup(t *testing.T) {
	main := makeChain(nil, 5, 40, 1)
	branch := append(slices.Clone(main[:20]), makeChain(main[19], 0, 30, 2)...)
	for name, third := range map[string][]*starknet.Block{
		"empty": nil, "another branch": branch, "longer": append(slices.Clone(main), makeChain(main[39], 0, 9, 3)...), "behind": main[:7],
	} {
		t.Run(name, func(t *testing.T) {
			for place := range 3 {
				fakes := []*nodetest.Node{nodetest.New(t, 10, main), nodetest.New(t, 9, main), nodetest.New(t, 8, main)}
				fakes[place].Set(third)
				g := newGroup(t, 2, fakes...)
				copyTo(t, g, nil, main)
				copyTo(t, g, branch, main) // they were reorganized
				status := g.Status()
				if status.Nodes == nil || status.Agreement.Nodes < 2 || status.Head.Number != main[39].Number || !status.Since.IsZero() {
					t.Errorf("the status is %+v", status)
				}
				for i, n := range status.Nodes {
					if n.Head.Number > 0 && n.Latency <= 0 {
						t.Errorf("node %d has the head %d without a latency", i, n.Head)
					}
				}
				if differs := status.Differs[place]; (differs != "") != (name == "another branch") {
					t.Errorf("the third node: %q", differs)
				}
			}
		})
	}
	t.Run("silent", func(t *testing.T) {
		silent := nodetest.New(t, 10, main)
		end := make(chan struct{})
		defer close(end)
		silent.Mischief = func(_ http.ResponseWriter, _ nodetest.Question, _ []byte) bool { <-end; return true }
		copyTo(t, newGroup(t, 2, silent, nodetest.New(t, 10, main), nodetest.New(t, 10, main)), nil, main)
	})
}

// Without a quorum the head stays, the reason is known, and it moves on with one.
func TestGroupDisagrees(t *testing.T) {
	main, other := makeChain(nil, 0, 12, 1), makeChain(nil, 0, 12, 2)
	fakes := []*nodetest.Node{nodetest.New(t, 10, main), nodetest.New(t, 10, other), nodetest.New(t, 10, nil)}
	g := newGroup(t, 2, fakes...)
	ctx, cancel := context.WithCancel(t.Context())
	kept := &keptChain{t: t}
	ended := make(chan error, 1)
	go func() { ended <- g.Follow(ctx, 0, kept) }()
	// On a slow machine a node may answer too late to be asked again in the next rounds.
	known := func(s GroupStatus) bool {
		return s.Agreement.Nodes == 0 && !s.Since.IsZero() && strings.Contains(s.Problem, "2 must have the same block, but block 11 is")
	}
	for end := time.Now().Add(2 * time.Minute); !known(g.Status()) && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	if s := g.Status(); !known(s) {
		t.Errorf("the status is %+v", s)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) || len(kept.blocks) > 0 {
		t.Fatalf("%v, and %d blocks without a quorum", err, len(kept.blocks))
	}
	fakes[2].Set(main)
	copyTo(t, g, nil, main)
}

// A node that agrees on the head and then serves blocks of another branch is found out before
// any of them is appended, and another node supplies them.
func TestGroupProvesBlocks(t *testing.T) {
	main, other := makeChain(nil, 0, 12, 1), makeChain(nil, 0, 12, 2)
	liar := nodetest.New(t, 10, main)
	var lies atomic.Int64
	shadow := nodetest.New(t, 10, other)
	liar.Mischief = func(w http.ResponseWriter, q nodetest.Question, _ []byte) bool {
		if q.Method != "starknet_getBlockWithReceipts" || q.Number > 2 {
			return false
		}
		lies.Add(1)
		w.Write(shadow.Answer(q))
		return true
	}
	g := newGroup(t, 2, liar, nodetest.New(t, 10, main), nodetest.New(t, 10, main))
	copyTo(t, g, nil, main)
	if s := g.Status(); lies.Load() == 0 || s.Nodes[0].Invalid == 0 {
		t.Errorf("%d lies: %+v", lies.Load(), s.Nodes[0])
	}
}

// Nodes of another chain have no votes, however many they are.
func TestGroupOfAnotherChain(t *testing.T) {
	main, other := makeChain(nil, 0, 12, 1), makeChain(nil, 0, 12, 2)
	fakes := []*nodetest.Node{nodetest.New(t, 10, other), nodetest.New(t, 10, main), nodetest.New(t, 10, other)}
	fakes[0].ChainID, fakes[2].ChainID = starknet.FeltOf(78), starknet.FeltOf(78)
	options := optionsFor(fakes[1])
	options.ChainID = fakes[1].ChainID
	g, err := NewGroup([]string{fakes[0].URL, fakes[1].URL, fakes[2].URL}, 2, options)
	if err != nil {
		t.Fatal(err)
	}
	kept := &keptChain{t: t}
	if _, err := g.approach(t.Context(), 0, kept); !errors.Is(err, errNoQuorum) || len(kept.blocks) > 0 {
		t.Errorf("%v, and %d blocks of another chain", err, len(kept.blocks))
	}
}

// What is accepted on layer 1 is what a quorum of the nodes says at least.
func TestGroupL1Accepted(t *testing.T) {
	main := makeChain(nil, 0, 12, 1)
	fakes := []*nodetest.Node{nodetest.New(t, 10, main), nodetest.New(t, 9, main), nodetest.New(t, 8, main)}
	fakes[0].AcceptOnL1(9)
	fakes[1].AcceptOnL1(4)
	for quorum, want := range map[int]uint64{1: 9, 2: 4} {
		if number, err := newGroup(t, quorum, fakes...).L1Accepted(t.Context(), math.MaxUint64, fitsAll); err != nil || number != want {
			t.Errorf("quorum %d: block %d, %v, want %d", quorum, number, err, want)
		}
	}
	if _, err := newGroup(t, 3, fakes...).L1Accepted(t.Context(), math.MaxUint64, fitsAll); !errors.Is(err, errNoQuorum) {
		t.Errorf("one of three does not know: %v", err)
	}
}

// A node of another chain is not believed what is accepted on layer 1.
func TestL1AcceptedOfAnotherChain(t *testing.T) {
	main := makeChain(nil, 0, 12, 1)
	fakes := []*nodetest.Node{nodetest.New(t, 10, main), nodetest.New(t, 10, main), nodetest.New(t, 10, main)}
	for i, fake := range fakes {
		fake.AcceptOnL1(uint64(9 - i))
	}
	fakes[0].ChainID = starknet.FeltOf(78)
	options := optionsFor(fakes[0])
	options.ChainID = fakes[1].ChainID
	if number, err := newNode(t, options).L1Accepted(t.Context(), math.MaxUint64, fitsAll); !errors.Is(err, ErrOtherChain) {
		t.Errorf("block %d, %v, want the error %q", number, err, ErrOtherChain)
	}
	g, err := NewGroup([]string{fakes[0].URL, fakes[1].URL, fakes[2].URL}, 2, options)
	if err != nil {
		t.Fatal(err)
	}
	if number, err := g.L1Accepted(t.Context(), math.MaxUint64, fitsAll); err != nil || number != 7 {
		t.Errorf("of a group: block %d, %v, want 7", number, err)
	}
}

func fitsAll(chain.Ref) error { return nil }

// A node whose block differs from the one here is not believed what is accepted on layer 1.
func TestL1AcceptedOfAnotherBranch(t *testing.T) {
	main := makeChain(nil, 0, 12, 1)
	other := append(slices.Clone(main[:6]), makeChain(main[5], 6, 6, 2)...)
	fits := func(block chain.Ref) error {
		if block != main[block.Number].Ref() {
			return errContradiction
		}
		return nil
	}
	fakes := []*nodetest.Node{nodetest.New(t, 10, other), nodetest.New(t, 10, main), nodetest.New(t, 10, main)}
	for i, fake := range fakes {
		fake.AcceptOnL1(uint64(9 - i))
	}
	if number, err := newNode(t, optionsFor(fakes[0])).L1Accepted(t.Context(), math.MaxUint64, fits); !errors.Is(err, errContradiction) {
		t.Errorf("block %d, %v, want the error %q", number, err, errContradiction)
	}
	if number, err := newGroup(t, 2, fakes...).L1Accepted(t.Context(), math.MaxUint64, fits); err != nil || number != 7 {
		t.Errorf("of a group: block %d, %v, want 7", number, err)
	}
}

// While the network here is behind the block that is accepted on layer 1, a node that does not have its newest block is
// not believed that it is accepted.
func TestL1AcceptedAboveTheHead(t *testing.T) {
	main := makeChain(nil, 0, 12, 1)
	other := append(slices.Clone(main[:6]), makeChain(main[5], 6, 6, 2)...)
	const head = 7
	fits := func(block chain.Ref) error {
		if block.Number <= head && block != main[block.Number].Ref() {
			return errContradiction
		}
		return nil
	}
	fakes := []*nodetest.Node{nodetest.New(t, 10, other), nodetest.New(t, 10, main), nodetest.New(t, 10, main)}
	for i, fake := range fakes {
		fake.AcceptOnL1(uint64(10 - i))
	}
	if number, err := newNode(t, optionsFor(fakes[0])).L1Accepted(t.Context(), head, fits); !errors.Is(err, errContradiction) {
		t.Errorf("block %d, %v, want the error %q", number, err, errContradiction)
	}
	if number, err := newNode(t, optionsFor(fakes[1])).L1Accepted(t.Context(), head, fits); err != nil || number != head {
		t.Errorf("block %d, %v, want %d", number, err, head)
	}
	if number, err := newGroup(t, 2, fakes...).L1Accepted(t.Context(), head, fits); err != nil || number != head {
		t.Errorf("of a group: block %d, %v, want %d", number, err, head)
	}
	if number, err := newGroup(t, 3, fakes...).L1Accepted(t.Context(), head, fits); !errors.Is(err, errNoQuorum) {
		t.Errorf("of a group with a node of another branch: block %d, %v, want the error %q", number, err, errNoQuorum)
	}
}

// TestGroupWithSlowNode: if two nodes contradict each other, the vote of a slow one decides.
func TestGroupWithSlowNode(t *testing.T) {
	main, other := makeChain(nil, 0, 12, 1), makeChain(nil, 0, 12, 2)
	slow := nodetest.New(t, 10, main)
	const poll = 50 * time.Millisecond
	slow.Mischief = func(_ http.ResponseWriter, q nodetest.Question, _ []byte) bool {
		if q.Method == "starknet_getBlockWithTxHashes" {
			time.Sleep(4 * poll) // the others have answered long before
		}
		return false
	}
	liar := nodetest.New(t, 10, other)
	options := optionsFor(slow)
	options.Poll = poll
	g, err := NewGroup([]string{liar.URL, slow.URL, nodetest.New(t, 10, main).URL}, 2, options)
	if err != nil {
		t.Fatal(err)
	}
	copyTo(t, g, nil, main)
}
