package archive

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
)

// TestStartRows: after a boundary of wholeEvery, the rows of an archive that began with a
// state are byte for byte those of one that began with the genesis.
func TestStartRows(t *testing.T) {
	wholeEvery = 16
	t.Cleanup(func() { wholeEvery = 1 << 20 })
	for seed := range uint64(4) {
		g := newGrower(t, 900+seed)
		for range 48 {
			g.block()
		}
		const first = 31 // the last block before a boundary
		whole := grown(t, g)
		part := startedAt(t, g, first)
		for at := first + 1; at < len(g.blocks); {
			n := min(1+g.random.IntN(6), len(g.blocks)-at)
			if err := part.Append(t.Context(), g.blocks[at:at+n]...); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		for number := first; number < len(g.blocks); number++ {
			checkFlatState(t, g, part, number)
			checkTries(t, g, part, number)
		}
		for _, table := range Tables() {
			want, got := rowsAfter(t, whole.store, table, first), rowsAfter(t, part.store, table, first)
			if table == codes {
				continue // their sort key is not of a block
			}
			if len(want) == 0 && table != accessLists {
				t.Errorf("seed %d: %s has no rows to compare", seed, table.Name)
			}
			if !maps.Equal(want, got) {
				t.Errorf("seed %d: %s: %d rows, want %d, or others", seed, table.Name, len(got), len(want))
			}
		}
	}
}

// rowsAfter returns the rows of blocks after one.
func rowsAfter(t *testing.T, store kv.Store, table *kv.Table, first uint64) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for row, err := range store.Walk(t.Context(), table, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if table.BlockOf(row.Sort) > first {
			all[fmt.Sprintf("%x at %d", row.Partition, row.Sort)] = string(row.Value)
		}
	}
	return all
}

// startedAt returns an archive that begins with the state after a block of g.
func startedAt(t *testing.T, g *grower, first uint64) *Archive {
	t.Helper()
	begin := func(store kv.Store) *Start {
		s, err := Begin(t.Context(), store, testGenesis(), Beginning{Ref: g.blocks[first].Ref()}, TraceIndex)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := begin(openStore(t, vfs.NewMem()))
	if g.format != "" {
		setFormat(t, s.store, g.format)
		s = begin(s.store)
	}
	putState := func(tries *trie.StackTrie, root common.Hash) {
		if got := tries.Hash(); got != root {
			t.Fatalf("the model has the root %x, want %x", got, root)
		}
	}
	tries := func(owner common.Hash) *trie.StackTrie {
		return trie.NewStackTrie(func(path []byte, _ common.Hash, blob []byte) {
			if err := s.PutNode(owner, path, blob); err != nil {
				t.Fatal(err)
			}
		})
	}
	state, accounts := g.states[first], tries(common.Hash{})
	for _, address := range slices.SortedFunc(maps.Keys(state.accounts), common.Hash.Cmp) {
		account, storage := state.accounts[address], tries(address)
		for _, slot := range slices.SortedFunc(maps.Keys(state.slots[address]), common.Hash.Cmp) {
			word := common.TrimLeftZeroes(bytes.Clone(common.Hash(state.slots[address][slot]).Bytes()))
			s.PutSlot(address, slot, word)
			if err := storage.Update(slot[:], mustEncode(t, word)); err != nil {
				t.Fatal(err)
			}
		}
		if account.Root != types.EmptyRootHash {
			putState(storage, account.Root)
		}
		s.PutAccount(address, account)
		if err := errors.Join(accounts.Update(address[:], mustEncode(t, account)), s.Done(t.Context(), address)); err != nil {
			t.Fatal(err)
		}
	}
	putState(accounts, g.blocks[first].Block.Root())
	if err := s.PutBlock(g.blocks[0], g.blocks[0].Block.Difficulty()); err != nil {
		t.Fatal(err)
	}
	total := big.NewInt(7 * int64(first+1)) // each block has 7
	a, err := s.Finish(t.Context(), first, &evm.Delta{Block: g.blocks[first].Block, Senders: g.blocks[first].Senders, Receipts: g.blocks[first].Receipts}, total)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestPruned: what is older than the first block, or the first state, is refused by name.
func TestPruned(t *testing.T) {
	g := newGrower(t, 910)
	for range 20 {
		g.block()
	}
	a := startedAt(t, g, 12)
	if got := a.Extent(); got != (Extent{Blocks: 12, State: 12, Tries: 12}) {
		t.Errorf("it begins with %+v", got)
	}
	if _, err := a.Header(t.Context(), 0); err != nil {
		t.Errorf("the genesis: %v", err)
	}
	want := Pruned{Number: 11, First: 12}
	for _, read := range []func() error{
		func() error { _, err := a.Header(t.Context(), 11); return err },
		func() error { _, err := a.Body(t.Context(), 11, nil); return err },
		func() error { _, err := a.Receipts(t.Context(), 11, nil); return err },
		func() error { return a.CheckRange(0, 12) },
	} {
		var got *Pruned
		if err := read(); !errors.As(err, &got) || got.First != want.First || got.Kind != OfBlock {
			t.Errorf("block 11: %v", err)
		}
	}
	for _, number := range []uint64{0, 11} {
		var got *Pruned
		if _, err := a.StateAt(number).Account(t.Context(), common.Hash{}); !errors.As(err, &got) || *got != (Pruned{Kind: OfState, Number: number, First: 12}) {
			t.Errorf("state of block %d: %v", number, err)
		}
		if _, err := a.StateAt(number).Node(t.Context(), common.Hash{}, nil, common.Hash{}); !errors.As(err, &got) {
			t.Errorf("trie of block %d: %v", number, err)
		}
	}
	if _, err := Rewind(t.Context(), a.store, 11, nil); !errors.As(err, new(*Pruned)) {
		t.Errorf("rewind before the first state: %v", err)
	}
}

// TestExecuted: blocks from the state on with which an archive began were executed, also when a window
// has removed their state.
func TestExecuted(t *testing.T) {
	g := newGrower(t, 911)
	for range 20 {
		g.block()
	}
	started := startedAt(t, g, 12)
	if err := started.Append(t.Context(), g.blocks[13:]...); err != nil {
		t.Fatal(err)
	}
	for began, a := range map[uint64]*Archive{0: grown(t, g), 12: started} {
		for _, move := range []bool{false, true} {
			if move {
				if err := a.SetFirst(t.Context(), Extent{Blocks: 13, State: 17, Tries: 17}); err != nil {
					t.Fatal(err)
				}
				reopened, err := Open(t.Context(), a.store)
				if err != nil {
					t.Fatal(err)
				}
				a = reopened
			}
			for _, number := range []uint64{0, 11, 12, 13, 18} {
				if got := a.Executed(number); got != (number >= began) {
					t.Errorf("an archive that began with block %d, moved %v: block %d was executed: %v", began, move, number, got)
				}
			}
		}
	}
}

// TestBeginAgain: a start continues with the same block only, and from the same source once
// something was written. Nothing else uses the store before it is complete.
func TestBeginAgain(t *testing.T) {
	store, genesis := openStore(t, vfs.NewMem()), testGenesis()
	at := Beginning{Ref: chain.Ref{Number: 7, Hash: common.Hash{7}}, Source: common.Hash{1}}
	another := Beginning{Ref: at.Ref, Source: common.Hash{2}}
	if _, err := Begin(t.Context(), store, genesis, another); err != nil {
		t.Fatal(err)
	}
	s, err := Begin(t.Context(), store, genesis, at)
	if err != nil {
		t.Fatal(err)
	}
	done := common.Hash{9}
	if err := errors.Join(s.Done(t.Context(), done), s.flush(t.Context(), 0)); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), store, genesis); !errors.Is(err, ErrStarting) {
		t.Errorf("Create: %v", err)
	}
	if _, err := Begin(t.Context(), store, genesis, Beginning{Ref: chain.Ref{Number: 8}, Source: at.Source}); !errors.Is(err, ErrStarting) {
		t.Errorf("Begin at another block: %v", err)
	}
	if _, err := Begin(t.Context(), store, genesis, another); !errors.Is(err, ErrStarting) {
		t.Errorf("Begin from another source: %v", err)
	}
	other := testGenesis()
	other.GasLimit = 5
	if _, err := Begin(t.Context(), store, other, at); !errors.Is(err, ErrOtherChain) {
		t.Errorf("Begin with another genesis: %v", err)
	}
	again, err := Begin(t.Context(), store, genesis, at)
	if err != nil || again.LastDone() != done {
		t.Fatalf("Begin again: done up to %x, %v", again.LastDone(), err)
	}
	if err := again.Fail(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(t.Context(), store, genesis, at); !errors.Is(err, ErrStarting) {
		t.Errorf("Begin after a failure: %v", err)
	}
}
