package ingest

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/source/synthetic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func open(t *testing.T) (kv.Store, *archive.Archive) {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "starknet", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a, err := archive.Create(t.Context(), store, "SN_TEST")
	if err != nil {
		t.Fatal(err)
	}
	return store, a
}

func makeBlocks(first uint64, n int) (blocks []*starknet.Block) {
	options := synthetic.Default()
	options.First = first
	for chain := synthetic.New(options); len(blocks) < n; {
		blocks = append(blocks, unchecked(chain.Next()))
	}
	return blocks
}

// unchecked removes the version from a block whose hash matches no rule, so that it is not checked.
func unchecked(block *starknet.Block) *starknet.Block {
	block.Version = "99.0"
	return block
}

// list is a source of given blocks.
type list struct {
	blocks []*starknet.Block
	next   func() // called before each block
	end    error  // instead of io.EOF
}

func (l *list) Next() (*starknet.Block, error) {
	if l.next != nil {
		l.next()
	}
	if len(l.blocks) == 0 {
		return nil, cmp.Or(l.end, io.EOF)
	}
	block := l.blocks[0]
	l.blocks = l.blocks[1:]
	return block, nil
}

// TestImportResumes: imports that stop anywhere, and overlap, result in the whole chain.
func TestImportResumes(t *testing.T) {
	_, a := open(t)
	blocks := makeBlocks(50, 700)
	settled := 0 // of the blocks
	for _, span := range [][2]int{{0, 10}, {0, 300}, {299, 299}, {250, 700}, {0, 700}} {
		i := New(a)
		if err := i.Import(t.Context(), &list{blocks: blocks[span[0]:span[1]]}); err != nil {
			t.Fatal(err)
		}
		last := 50 + uint64(max(settled, span[1])) - 1
		want := Progress{Skipped: uint64(span[1] - span[0]), Head: last, Kept: last}
		for ; settled < span[1]; settled++ {
			want.Skipped--
			want.Blocks++
			want.Unchecked++
			want.Transactions += uint64(len(blocks[settled].Transactions))
			want.Events += uint64(blocks[settled].EventCount())
		}
		if done := i.Progress(); done != want || a.Span().Last.Number != last {
			t.Errorf("%v: %+v, want %+v; settled is %s", span, done, want, a.Span().Last)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	_, b := open(t)
	n := 0
	err := New(b).Import(ctx, &list{blocks: blocks, next: func() {
		if n++; n == 100 {
			stop()
		}
	}})
	if !errors.Is(err, context.Canceled) || b.Span() == nil || b.Span().Last.Number < 50+98 {
		t.Errorf("interrupted: %v, holds %+v", err, b.Span())
	}
	if err := New(b).Import(t.Context(), &list{blocks: blocks}); err != nil || b.Span().Last != a.Span().Last {
		t.Errorf("resumed: %v, holds up to %s, want %s", err, b.Span().Last, a.Span().Last)
	}
}

func TestImportRefuses(t *testing.T) {
	_, a := open(t)
	blocks := makeBlocks(50, 20)
	if err := New(a).Import(t.Context(), &list{blocks: blocks[:10]}); err != nil {
		t.Fatal(err)
	}
	other := *blocks[5]
	other.Hash = starknet.FeltOf(1)
	orphan := *blocks[10]
	orphan.Parent = starknet.FeltOf(1)
	false13 := *blocks[10]
	false13.Version = "0.13.1"
	for name, test := range map[string]struct {
		block *starknet.Block
		want  error
	}{
		"a gap":                       {blocks[12], ErrGap},
		"another block in a place":    {&other, ErrOtherChain},
		"another parent":              {&orphan, ErrOtherChain},
		"a block before the first":    {makeBlocks(49, 1)[0], rows.ErrNotFound},
		"a hash of no block's making": {&false13, nil},
	} {
		err := New(a).Import(t.Context(), &list{blocks: []*starknet.Block{test.block}})
		var about *BlockError
		if !errors.As(err, &about) || about.Number != test.block.Number || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
	}
	if got := a.Span().Last; got != blocks[9].Ref() {
		t.Errorf("settled is %s, want %s", got, blocks[9].Ref())
	}
	far := *blocks[12]
	far.Parent = starknet.FeltOf(1)
	for block, want := range map[*starknet.Block]error{blocks[13]: ErrGap, &far: ErrOtherChain} { // in a group with its right predecessors
		err := New(a).Import(t.Context(), &list{blocks: []*starknet.Block{blocks[10], blocks[11], block}})
		var about *BlockError
		if !errors.As(err, &about) || about.Number != block.Number || !errors.Is(err, want) || a.Span().Last != blocks[11].Ref() {
			t.Errorf("block %d: %v, want %v; settled is %s", block.Number, err, want, a.Span().Last)
		}
	}
}

// TestShortChain: nothing but the first block is settled as long as the chain is shorter than the depth.
func TestShortChain(t *testing.T) {
	store, a := open(t)
	blocks := makeBlocks(0, 8)
	f, err := OpenFollower(t.Context(), store, a, 5)
	if err != nil {
		t.Fatal(err)
	}
	for i, block := range blocks {
		if err := f.Append(t.Context(), block); err != nil {
			t.Fatal(err)
		}
		if want := blocks[max(0, i-5)].Ref(); a.Span().Last != want {
			t.Errorf("with %d blocks, settled is %s, want %s", i+1, a.Span().Last, want)
		}
	}
}

// TestFollower: blocks are appended, reverted and settled; all of them are there after a restart.
func TestFollower(t *testing.T) {
	store, a := open(t)
	ctx := t.Context()
	blocks := makeBlocks(7, 30)
	f, err := OpenFollower(ctx, store, a, 5)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, ok, err := f.Held(ctx); ok || err != nil {
		t.Errorf("an empty chain holds blocks: %v, %v", ok, err)
	}
	if err := f.Revert(ctx, blocks[0].Ref()); err == nil {
		t.Error("an empty chain was reverted")
	}
	if hash, err := f.Hash(ctx, 7); !errors.Is(err, rows.ErrNotFound) {
		t.Errorf("block 7 of an empty chain: %s, %v, want %v", hash, err, rows.ErrNotFound)
	}
	var first *tip.Tip
	for _, block := range blocks[:20] {
		if err := f.Append(ctx, block); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = f.Tip()
		} else if f.Tip() != first {
			t.Fatalf("block %d replaces the tip, whose subscribers learn of no more blocks", block.Number)
		}
	}
	check := func(f *Follower, head *starknet.Block) {
		t.Helper()
		first, last, ok, err := f.Held(ctx)
		if err != nil || !ok || first != blocks[0].Ref() || last != head.Ref() {
			t.Errorf("holds %s to %s, %v, %v, want %s to %s", first, last, ok, err, blocks[0].Ref(), head.Ref())
		}
		for _, block := range blocks[:head.Number-7] {
			if hash, err := f.Hash(ctx, block.Number); err != nil || hash != block.Ref().Hash {
				t.Errorf("block %d has the hash %x, %v, want %s", block.Number, hash, err, block.Hash)
			}
		}
	}
	check(f, blocks[19])
	if got := a.Span().Last; got != blocks[14].Ref() {
		t.Errorf("settled is %s, want %s", got, blocks[14].Ref())
	}
	stopped, stop := context.WithCancel(ctx)
	stop()
	if err := f.Append(stopped, blocks[20]); !errors.Is(err, context.Canceled) {
		t.Errorf("a block after the end: %v, want %v", err, context.Canceled)
	}
	huge := *blocks[20]
	huge.Transactions = make([]starknet.Transaction, rows.MaxTransactions+1)
	if err := f.Append(ctx, &huge); err == nil {
		t.Error("a block that the format cannot hold was appended")
	}
	if err := f.Append(ctx, blocks[21]); !errors.Is(err, rows.ErrNotNext) {
		t.Errorf("a gap: %v, want ErrNotNext", err)
	}
	if err := f.Revert(ctx, blocks[13].Ref()); !errors.Is(err, ErrTooDeep) || !strings.Contains(err.Error(), "`ashlar rewind` with --to 20") {
		t.Errorf("below the settled block: %v, want ErrTooDeep and the remedy", err)
	}
	if err := f.Revert(ctx, blocks[16].Ref()); err != nil {
		t.Fatal(err)
	}
	check(f, blocks[16])
	fork := *blocks[17]
	fork.Hash = starknet.FeltOf(17)
	if err := f.Append(ctx, &fork); err != nil {
		t.Fatal(err)
	}
	again, err := OpenFollower(ctx, store, a, 5)
	if err != nil {
		t.Fatal(err)
	}
	check(again, &fork)
}

// TestRevertedBlocksAreDropped: a source whose chain is reorganized again and again does not fill the tip.
func TestRevertedBlocksAreDropped(t *testing.T) {
	store, a := open(t)
	ctx := t.Context()
	blocks := makeBlocks(7, 10)
	const depth = 5
	f, err := OpenFollower(ctx, store, a, depth)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks[:9] {
		if err := f.Append(ctx, block); err != nil {
			t.Fatal(err)
		}
	}
	var reverted []*starknet.Block
	for i := range uint64(40) {
		other := *blocks[9]
		other.Hash = starknet.FeltOf(i)
		if err := f.Append(ctx, &other); err != nil {
			t.Fatal(err)
		}
		if err := f.Revert(ctx, blocks[8].Ref()); err != nil {
			t.Fatal(err)
		}
		reverted = append(reverted, &other)
	}
	kept := 0
	for _, block := range reverted {
		if f.Tip().Has(block.Ref().Hash) {
			kept++
		}
	}
	if kept > 2*depth {
		t.Errorf("%d of %d reverted blocks are kept, expected at most %d", kept, len(reverted), 2*depth)
	}
	if _, head, _, err := f.Held(ctx); err != nil || head != blocks[8].Ref() {
		t.Errorf("the head is %s, %v, expected %s", head, err, blocks[8].Ref())
	}
}

// stopper is a store that fails after one of its writes.
type stopper struct {
	kv.Store
	stop context.CancelFunc
	left int // writes until then
}

func (s *stopper) Write(ctx context.Context, b kv.Batch) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := s.Store.Write(ctx, b)
	if s.left--; s.left == 0 {
		s.stop()
	}
	return err
}

// TestCrashWhileAppending: after a failure between any two writes, both the same follower and a new
// one can continue.
func TestCrashWhileAppending(t *testing.T) {
	blocks := makeBlocks(7, 20)
	for _, length := range []int{1, 3, 12} { // the last block begins the chain, extends it, or settles
		for after := 1; after <= 4; after++ {
			under, _ := open(t)
			store := &stopper{Store: under}
			f := openFollower(t, store, 5)
			for i, block := range blocks[:length] {
				ctx, stop := context.WithCancel(t.Context())
				if i == length-1 {
					store.stop, store.left = stop, after
				}
				if err := f.Append(ctx, block); err != nil {
					t.Fatalf("block %d, stopped after write %d: %v", block.Number, after, err)
				}
				stop()
			}
			again, err := OpenFollower(t.Context(), store, f.archive, 5)
			if err != nil {
				t.Fatal(err)
			}
			for _, goesOn := range []*Follower{f, again} {
				if _, head, ok, err := goesOn.Held(t.Context()); err != nil || !ok || head != blocks[length-1].Ref() {
					t.Errorf("%d blocks, stopped after write %d: holds up to %s, %v, %v", length, after, head, ok, err)
				}
			}
			if err := f.Append(t.Context(), blocks[length]); err != nil {
				t.Errorf("%d blocks, stopped after write %d: the next block: %v", length, after, err)
			}
		}
	}
}

// failingSync is a store whose Sync fails a given number of times.
type failingSync struct {
	kv.Store
	failures int
}

var errSync = errors.New("the disk says no")

func (s *failingSync) Sync(ctx context.Context) error {
	if s.failures > 0 {
		s.failures--
		return errSync
	}
	return s.Store.Sync(ctx)
}

// TestFirstBlockIsRetried: a first block that was not made durable does not prevent the next ones,
// whether or not it is appended again.
func TestFirstBlockIsRetried(t *testing.T) {
	blocks := makeBlocks(5, 3)
	for name, then := range map[string][]*starknet.Block{"the same again": blocks, "the next": blocks[1:]} {
		below, err := pebble.Open(pebble.Options{Path: "starknet", FS: vfs.NewMem()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { below.Close() })
		store := &failingSync{Store: below}
		a, err := archive.Create(t.Context(), store, "SN_TEST")
		if err != nil {
			t.Fatal(err)
		}
		f, err := OpenFollower(t.Context(), store, a, 2)
		if err != nil {
			t.Fatal(err)
		}
		store.failures = 1
		if err := f.Append(t.Context(), blocks[0]); !errors.Is(err, errSync) {
			t.Errorf("%s: the first block: %v, expected the disk's error", name, err)
		}
		for _, block := range then {
			if err := f.Append(t.Context(), block); err != nil {
				t.Errorf("%s: block %d: %v", name, block.Number, err)
			}
		}
		if _, head, ok, err := f.Held(t.Context()); err != nil || !ok || head != blocks[2].Ref() {
			t.Errorf("%s: the head is %s, %t, %v, expected %s", name, head, ok, err, blocks[2].Ref())
		}
	}
}
