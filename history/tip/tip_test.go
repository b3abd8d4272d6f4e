package tip_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
)

// ref returns a block reference from a number and a letter for the branch.
func ref(number uint64, branch byte) chain.Ref {
	return chain.Ref{Number: number, Hash: common.Hash{branch, byte(number)}}
}

func openTip(t *testing.T, store kv.Store, settled chain.Ref) *tip.Tip {
	t.Helper()
	opened, err := tip.Open(context.Background(), store, allTables(), settled)
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// grow adds a block with one row that identifies it.
func grow(t *testing.T, to *tip.Tip, block, parent chain.Ref) {
	t.Helper()
	rows := new(tip.Rows)
	rows.Put(versions, []byte("last"), block.Number, []byte(block.String()))
	if err := to.Add(context.Background(), block, parent.Hash, rows); err != nil {
		t.Fatal(err)
	}
}

func setHead(t *testing.T, of *tip.Tip, head chain.Ref) {
	t.Helper()
	if err := of.SetHead(context.Background(), head.Hash, chain.Ref{}, chain.Ref{}); err != nil {
		t.Fatal(err)
	}
}

// withHead makes a store whose last settled block is 10 and whose head is 11. It is closed at the end of the test.
func withHead(t *testing.T) (store kv.Store, writer *tip.Tip, settled chain.Ref) {
	t.Helper()
	store, settled = openStore(t, vfs.NewMem()), ref(10, 'a')
	t.Cleanup(func() { store.Close() })
	writer = openTip(t, store, settled)
	grow(t, writer, ref(11, 'a'), settled)
	setHead(t, writer, ref(11, 'a'))
	return store, writer, settled
}

// last returns the newest row written by grow, as of a number.
func last(t *testing.T, branch *tip.Branch, store kv.Reader, at uint64) string {
	t.Helper()
	value, _, err := branch.Over(store).Newest(context.Background(), versions, []byte("last"), at, nil)
	if err != nil {
		t.Fatal(err)
	}
	return string(value)
}

func TestReorganization(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	settled := ref(9, 's')
	of := openTip(t, store, settled)
	grow(t, of, ref(10, 'a'), settled)
	grow(t, of, ref(11, 'a'), ref(10, 'a'))
	grow(t, of, ref(11, 'b'), ref(10, 'a'))
	grow(t, of, ref(12, 'b'), ref(11, 'b'))

	if got := of.Forkchoice().Head.Ref(); got != settled {
		t.Errorf("blocks that were only added moved the head to %s", got)
	}
	moved := of.Moved()
	setHead(t, of, ref(11, 'a'))
	select {
	case <-moved:
	default:
		t.Error("Moved does not signal a new head")
	}
	before := of.Forkchoice().Head
	setHead(t, of, ref(12, 'b'))
	after := of.Forkchoice().Head
	for _, c := range []struct {
		branch *tip.Branch
		at     uint64
		want   chain.Ref
	}{
		{before, 10, ref(10, 'a')},
		{before, 11, ref(11, 'a')},
		{before, 99, ref(11, 'a')},
		{after, 11, ref(11, 'b')},
		{after, 12, ref(12, 'b')},
	} {
		if got := last(t, c.branch, store, c.at); got != c.want.String() {
			t.Errorf("as of %d on the branch of %s: %s, expected %s", c.at, c.branch.Ref(), got, c.want)
		}
	}
	if of = openTip(t, store, settled); of.Forkchoice().Head.Ref() != ref(12, 'b') || !of.Has(ref(11, 'a').Hash) {
		t.Errorf("after a restart the head is %s", of.Forkchoice().Head.Ref())
	}
}

// TestEachMove: one call at once and one for changes during it. Only errors caused by the end of
// the context are suppressed.
func TestEachMove(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	settled, next := ref(9, 's'), ref(10, 'a')
	of := openTip(t, store, settled)
	grow(t, of, next, settled)

	ctx, cancel := context.WithCancel(context.Background())
	var heads []chain.Ref
	err := of.EachMove(ctx, func(ctx context.Context) error {
		if heads = append(heads, of.Forkchoice().Head.Ref()); len(heads) == 1 {
			setHead(t, of, next)
			return nil
		}
		cancel()
		return fmt.Errorf("read: %w", ctx.Err())
	})
	if err != nil || !slices.Equal(heads, []chain.Ref{settled, next}) {
		t.Errorf("%v and %v, want the settled head, the next, and no error", heads, err)
	}
	broken := errors.New("the disk is broken")
	if err := of.EachMove(ctx, func(context.Context) error { return broken }); err != broken {
		t.Errorf("with a context that is done, %v, want what act returned", err)
	}
}

// TestPrune: the oldest branches are removed as a whole, except for the head's and the one to keep,
// and nothing of them stays in the store.
func TestPrune(t *testing.T) {
	for _, c := range []struct {
		name string
		most int
		keep chain.Ref
		gone []chain.Ref
	}{
		{"there is room", 9, ref(10, 'a'), nil},
		{"the oldest branch", 8, ref(11, 'a'), []chain.Ref{ref(10, 'b'), ref(11, 'b')}},
		{"the oldest but the one to keep", 8, ref(11, 'b'), []chain.Ref{ref(11, 'c')}},
		{"one after the other", 6, ref(12, 'a'), []chain.Ref{ref(10, 'b'), ref(11, 'b'), ref(11, 'c')}},
		{"all but two branches", 0, ref(13, 'd'), []chain.Ref{ref(10, 'b'), ref(11, 'b'), ref(11, 'c')}},
		{"all but the head's branch", 0, ref(10, 'x'), []chain.Ref{ref(10, 'b'), ref(11, 'b'), ref(11, 'c'), ref(13, 'd')}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := openStore(t, vfs.NewMem())
			defer store.Close()
			settled := ref(9, 's')
			of := openTip(t, store, settled)
			made := []chain.Ref{ref(10, 'a'), ref(11, 'a'), ref(12, 'a'), ref(13, 'a'), ref(10, 'b'), ref(11, 'b'), ref(11, 'c'), ref(13, 'd')}
			for i, parent := range []chain.Ref{settled, ref(10, 'a'), ref(11, 'a'), ref(12, 'a'), settled, ref(10, 'b'), ref(10, 'a'), ref(12, 'a')} {
				grow(t, of, made[i], parent)
			}
			setHead(t, of, ref(13, 'a'))
			if err := of.Prune(t.Context(), c.most, c.keep.Hash); err != nil {
				t.Fatal(err)
			}
			for _, of := range []*tip.Tip{of, openTip(t, store, settled)} {
				for _, block := range made {
					if of.Has(block.Hash) == slices.Contains(c.gone, block) {
						t.Errorf("block %s is there: %v", block, of.Has(block.Hash))
					}
				}
			}
		})
	}
}

// TestSettledIsDropped: no rows of settled blocks, or of branches that lost, stay in the tip's
// table.
func TestSettledIsDropped(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	ctx := context.Background()
	of := openTip(t, store, ref(0, 's'))
	parent := ref(0, 's')
	for n := range uint64(40) {
		grow(t, of, ref(n+1, 'a'), parent)
		grow(t, of, ref(n+1, 'b'), parent)
		parent = ref(n+1, 'a')
	}
	setHead(t, of, parent)
	if err := of.Settled(ctx, ref(40, 'b')); !errors.Is(err, tip.ErrUnknownBlock) {
		t.Errorf("settling a block of another branch: %v", err)
	}
	if err := of.Settled(ctx, ref(39, 'a')); err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for row, err := range store.Walk(ctx, tip.Tables()[0], 0) {
		if err != nil {
			t.Fatal(err)
		}
		left[string(row.Partition[:2])] = true
	}
	if len(left) != 2 || !left["a("] || !left["b("] { // 40 is "("
		t.Errorf("left are %v, expected both blocks 40", left)
	}
}

// TestRestartsAfterCrash repeatedly opens a tip after a crash between settling a block in the
// archive and recording that in the tip.
func TestRestartsAfterCrash(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	of := openTip(t, store, ref(9, 's'))
	grow(t, of, ref(10, 'a'), ref(9, 's'))
	grow(t, of, ref(10, 'b'), ref(9, 's'))
	grow(t, of, ref(11, 'b'), ref(10, 'b'))
	grow(t, of, ref(11, 'a'), ref(10, 'a'))
	setHead(t, of, ref(11, 'a'))
	for range 3 {
		if of = openTip(t, store, ref(10, 'a')); of.Forkchoice().Head.Ref() != ref(11, 'a') || of.Has(ref(11, 'b').Hash) {
			t.Errorf("the head is %s", of.Forkchoice().Head.Ref())
		}
	}
}

func TestAddRefuses(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	of := openTip(t, store, ref(5, 's'))
	for _, c := range []struct {
		block, parent chain.Ref
		want          string
	}{
		{ref(7, 'a'), ref(6, 'a'), "unknown parent"},
		{ref(7, 'a'), ref(5, 's'), "cannot follow block 5"},
		{ref(5, 'a'), ref(5, 's'), "cannot follow block 5"},
	} {
		err := of.Add(context.Background(), c.block, c.parent.Hash, new(tip.Rows))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("block %s after %s: %v, expected %q", c.block, c.parent, err, c.want)
		}
	}
	unknown := &kv.Table{ID: 99, Name: "unknown", Kind: kv.List}
	rows := new(tip.Rows)
	rows.Put(unknown, nil, 1, nil)
	if err := of.Add(context.Background(), ref(6, 'a'), ref(5, 's').Hash, rows); !errors.Is(err, tip.ErrCorrupt) {
		t.Errorf("a row of a table unknown to the tip: %v", err)
	}
}

// TestLargeBlock has rows that cross the boundaries between parts of a stored block.
func TestLargeBlock(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	of := openTip(t, store, ref(0, 's'))
	rows := new(tip.Rows)
	for i := range uint64(5) {
		rows.Put(indexed, []byte("p"), 1<<4|i, []byte(strings.Repeat(fmt.Sprint(i), 700_000)))
	}
	if err := of.Add(context.Background(), ref(1, 'a'), ref(0, 's').Hash, rows); err != nil {
		t.Fatal(err)
	}
	setHead(t, of, ref(1, 'a'))
	of = openTip(t, store, ref(0, 's'))
	value, err := of.Forkchoice().Head.Over(store).Get(context.Background(), indexed, []byte("p"), 1<<4|4, nil)
	if err != nil || string(value) != strings.Repeat("4", 700_000) {
		t.Errorf("a row of a block of several parts: %d bytes, %v", len(value), err)
	}
}

// TestReadersNeverWait reads while the head moves, forks and settles: readers always see a single
// branch.
func TestReadersNeverWait(t *testing.T) {
	store := openStore(t, vfs.NewMem())
	defer store.Close()
	ctx := context.Background()
	of := openTip(t, store, ref(0, 's'))
	grow(t, of, ref(1, 'a'), ref(0, 's'))
	setHead(t, of, ref(1, 'a'))
	done := make(chan struct{})
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				branch := of.Forkchoice().Head
				if got := last(t, branch, store, branch.Ref().Number); got != branch.Ref().String() {
					t.Errorf("the last block of %s is %s", branch.Ref(), got)
					return
				}
			}
		})
	}
	for n := uint64(2); n < 120; n++ {
		parent := of.Forkchoice().Head.Ref()
		for _, branch := range []byte{'a', 'b'} {
			grow(t, of, ref(n, branch), parent)
			setHead(t, of, ref(n, branch))
		}
		if n%10 != 0 {
			continue
		}
		batch := store.NewBatch()
		var settled chain.Ref
		for _, block := range of.Unsettled(n - 5) {
			settled = block.Ref()
			block.PutRows(batch)
		}
		if err := store.Write(ctx, batch); err != nil {
			t.Fatal(err)
		}
		if err := of.Settled(ctx, settled); err != nil {
			t.Fatal(err)
		}
	}
	close(done)
	readers.Wait()
}

// FuzzStoredBlock loads rows that no tip has written: they are rejected or decoded, without a
// panic.
func FuzzStoredBlock(f *testing.F) {
	rows := []byte{2, versions.ID, 'p', 1, 1, 'v'}
	parent := ref(0, 's').Hash
	whole := append(append(binary.AppendUvarint(nil, uint64(len(rows))), parent[:]...), rows...)
	f.Add(whole, []byte{})
	f.Add(whole[:20], whole[20:])
	f.Add([]byte{1}, []byte{2})
	f.Fuzz(func(t *testing.T, first, second []byte) {
		store := openStore(t, vfs.NewMem())
		defer store.Close()
		block := ref(1, 'a')
		pointer := make([]byte, 0, 160)
		for range 4 {
			pointer = append(binary.BigEndian.AppendUint64(pointer, block.Number), block.Hash[:]...)
		}
		batch := store.NewBatch()
		batch.SetPointer("tip", pointer)
		batch.Put(tip.Tables()[0], block.Hash[:], 0, first)
		batch.Put(tip.Tables()[0], block.Hash[:], 1, second)
		if err := store.Write(context.Background(), batch); err != nil {
			t.Fatal(err)
		}
		opened, err := tip.Open(context.Background(), store, allTables(), ref(0, 's'))
		if err != nil {
			if !errors.Is(err, tip.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		_, _, _ = opened.Forkchoice().Head.Over(store).Newest(context.Background(), versions, []byte("p"), 9, nil)
	})
}
