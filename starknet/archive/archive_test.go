package archive

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ashlar/history/postings"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/starknet"
	"ashlar/starknet/source/synthetic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

func openStore(t testing.TB) kv.Store {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "starknet", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func makeBlocks(first uint64, n int) (blocks []*starknet.Block) {
	options := synthetic.Default()
	options.First = first
	chain := synthetic.New(options)
	for range n {
		blocks = append(blocks, chain.Next())
	}
	return blocks
}

// busy adds a block with many events, most of them of one transaction, and lists of every length.
func busy(blocks []*starknet.Block) []*starknet.Block {
	last := blocks[len(blocks)-1]
	block := &starknet.Block{Header: starknet.Header{Number: last.Number + 1, Parent: last.Hash, Hash: starknet.FeltOf(99), Status: starknet.AcceptedOnL1}}
	for i := range 40 {
		t := starknet.Transaction{Hash: starknet.FeltOf(uint64(1000 + i)), Kind: starknet.Deploy}
		for n := range 1 + i*i%90 {
			event := starknet.Event{From: starknet.FeltOf(uint64(i))}
			for k := range n % 20 {
				event.Keys = append(event.Keys, starknet.FeltOf(uint64(k*n)))
			}
			for k := range n % 7 * 50 {
				event.Data = append(event.Data, starknet.FeltOf(uint64(k)<<(k%50)))
			}
			t.Receipt.Events = append(t.Receipt.Events, event)
		}
		block.Transactions = append(block.Transactions, t)
	}
	return append(blocks, block)
}

// TestEverythingComesBack appends a chain in groups, reopening the archive in between, and reads
// everything back.
func TestEverythingComesBack(t *testing.T) {
	store := openStore(t)
	blocks := busy(makeBlocks(1_000, 200))
	for rest := blocks; len(rest) > 0; {
		a, err := Create(t.Context(), store, "SN_TEST")
		if err != nil {
			t.Fatal(err)
		}
		n := min(len(rest), 37)
		if err := a.Append(t.Context(), rest[:n]...); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	a, err := Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	span := a.Span()
	if last := blocks[len(blocks)-1].Ref(); span.First != 1_000 || span.Last != last || a.ChainID() != "SN_TEST" {
		t.Fatalf("holds %+v of %s, want from 1000 to %s of SN_TEST", span, a.ChainID(), last)
	}
	r := a.Settled(span)
	events := r.Events(t.Context())
	for _, block := range blocks {
		checkBlock(t, r, events, block)
	}
}

// holding creates an archive with blocks.
func holding(t *testing.T, blocks []*starknet.Block) *Archive {
	t.Helper()
	a, err := Create(t.Context(), openStore(t), "SN_TEST")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Append(t.Context(), blocks...); err != nil {
		t.Fatal(err)
	}
	return a
}

// TestHighestBlock: a block with the highest number that fits its rows is found, and the next one
// is rejected.
func TestHighestBlock(t *testing.T) {
	blocks := busy(makeBlocks(rows.MaxNumber-2, 2))
	a := holding(t, blocks)
	r := a.Settled(a.Span())
	for _, block := range blocks {
		checkBlock(t, r, r.Events(t.Context()), block)
	}
	for _, number := range []uint64{rows.MaxNumber + 1, math.MaxUint64} {
		if err := Fits(makeBlocks(number, 1)[0]); err == nil {
			t.Errorf("block %d fits, expected an error", number)
		}
	}
}

func checkBlock(t *testing.T, r *Reader, events *EventReader, want *starknet.Block) {
	t.Helper()
	ctx := t.Context()
	header, err := r.Header(ctx, want.Number)
	if err != nil {
		t.Fatal(err)
	}
	if header.Header != want.Header || header.TransactionCount != uint64(len(want.Transactions)) || header.EventCount != uint64(want.EventCount()) {
		t.Fatalf("block %d: header %+v, want %+v", want.Number, header, want.Header)
	}
	if number, err := r.FindBlock(ctx, want.Hash); err != nil || number != want.Number {
		t.Fatalf("block %d is found at %d, %v", want.Number, number, err)
	}
	var position uint64
	for i := range want.Transactions {
		transaction := want.Transactions[i]
		place, got, err := r.FindTransaction(ctx, transaction.Hash)
		if err != nil || place != (rows.Place{Number: want.Number, Index: i}) {
			t.Fatalf("block %d, transaction %d: found at %v, %v", want.Number, i, place, err)
		}
		if got.FirstEvent != position || got.EventCount != uint64(len(transaction.Receipt.Events)) {
			t.Fatalf("block %d, transaction %d: %d events from %d, want %d from %d", want.Number, i, got.EventCount, got.FirstEvent, len(transaction.Receipt.Events), position)
		}
		stored := transaction
		stored.Receipt.Events, stored.Signature = nil, nil
		stored.Receipt.Messages = append([]starknet.Message{}, stored.Receipt.Messages...)
		if !reflect.DeepEqual(got.Transaction, stored) {
			t.Fatalf("block %d, transaction %d: %+v, want %+v", want.Number, i, got.Transaction, stored)
		}
		for at, event := range transaction.Receipt.Events {
			checkEvent(t, events, want.Number, position, Event{BlockHash: want.Hash, Transaction: uint64(i), TransactionHash: transaction.Hash, Index: uint64(at)}, event)
			position++
		}
	}
}

// checkEvent compares the event at a position with the expected event and place.
func checkEvent(t *testing.T, events *EventReader, block, position uint64, place Event, want starknet.Event) {
	t.Helper()
	got, err := events.Event(block, position)
	if err != nil {
		t.Fatalf("block %d, event %d: %v", block, position, err)
	}
	keys, data := collect(t, got.Keys), collect(t, got.Data)
	if got.BlockHash != place.BlockHash || got.Transaction != place.Transaction || got.TransactionHash != place.TransactionHash || got.Index != place.Index || got.From != want.From || !slices.Equal(keys, want.Keys) || !slices.Equal(data, want.Data) {
		t.Fatalf("block %d, event %d: %+v with keys %v and data %v, want %+v at %+v", block, position, got, keys, data, want, place)
	}
}

func collect(t *testing.T, list Felts) (felts []starknet.Felt) {
	t.Helper()
	var felt starknet.Felt
	for {
		ok, err := list.Next(&felt)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			return felts
		}
		felts = append(felts, felt)
	}
}

func TestPostingsOfEveryTerm(t *testing.T) {
	a, err := Create(t.Context(), openStore(t), "SN_TEST")
	if err != nil {
		t.Fatal(err)
	}
	blocks := busy(makeBlocks(0, 60))
	if err := a.Append(t.Context(), blocks...); err != nil {
		t.Fatal(err)
	}
	type place struct {
		block    uint64
		position uint32
	}
	want := make(map[postings.Term][]place)
	for _, block := range blocks {
		var at uint32
		for i := range block.Transactions {
			for _, event := range block.Transactions[i].Receipt.Events {
				terms := []postings.Term{AnyTerm(), AddressTerm(event.From)}
				for k, key := range event.Keys[:min(len(event.Keys), IndexedKeys)] {
					terms = append(terms, KeyTerm(k, key))
				}
				if len(event.Keys) > 0 {
					terms = append(terms, EventTerm(event.From, event.Keys[0]))
				}
				for _, term := range terms {
					want[term] = append(want[term], place{block.Number, at})
				}
				at++
			}
		}
	}
	for term, places := range want {
		var got []place
		found := a.Settled(a.Span()).Postings(t.Context(), term, 0, ^uint64(0))
		for found.Next() {
			positions, err := found.Positions(nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, position := range positions {
				got = append(got, place{found.Block(), position})
			}
		}
		if err := found.Close(); err != nil || !slices.Equal(got, places) {
			t.Fatalf("term %x: %v, %v, want %v", term, got, err, places)
		}
	}
}

func TestAppendRefusesGapsAndWrongLinks(t *testing.T) {
	blocks := makeBlocks(10, 6)
	a, err := Create(t.Context(), openStore(t), "SN_TEST")
	if err != nil {
		t.Fatal(err)
	}
	wrong := *blocks[3]
	wrong.Parent = starknet.FeltOf(7)
	if err := a.Append(t.Context(), blocks[0], blocks[2]); !errors.Is(err, rows.ErrNotNext) || a.Span() != nil {
		t.Errorf("a gap in a group: %v, holds %v", err, a.Span())
	}
	if err := a.Append(t.Context(), blocks[:3]...); err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*starknet.Block{"a gap": blocks[4], "a repeated block": blocks[2], "a wrong parent": &wrong} {
		if err := a.Append(t.Context(), block); !errors.Is(err, rows.ErrNotNext) {
			t.Errorf("%s: %v, want ErrNotNext", name, err)
		}
	}
	if got := a.Span().Last; got != blocks[2].Ref() {
		t.Errorf("settled is %s, want %s", got, blocks[2].Ref())
	}
}

func TestNotFound(t *testing.T) {
	blocks := makeBlocks(10, 3)
	a := holding(t, blocks)
	r := a.Settled(a.Span())
	_, err := r.Header(t.Context(), 9)
	if before := (*BeforeFirst)(nil); !errors.As(err, &before) || !errors.Is(err, rows.ErrNotFound) || !strings.Contains(err.Error(), "begins with block 10") {
		t.Errorf("a block before the first: %v", err)
	}
	if _, err := r.Transactions(t.Context(), 13, nil); !errors.Is(err, rows.ErrNotFound) {
		t.Errorf("a block after the last: %v", err)
	}
	alike := blocks[1].Hash
	alike[31] ^= 1
	if _, err := r.FindBlock(t.Context(), alike); !errors.Is(err, rows.ErrNotFound) {
		t.Errorf("an unknown hash with the prefix of a block's hash: %v", err)
	}
	if _, _, err := r.FindTransaction(t.Context(), alike); !errors.Is(err, rows.ErrNotFound) {
		t.Errorf("an unknown transaction hash: %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for _, id := range []string{"", "SN MAIN", "SN_\n", strings.Repeat("A", 32)} {
		if _, err := Create(t.Context(), openStore(t), id); !errors.Is(err, ErrChainID) {
			t.Errorf("chain ID %q: %v, want ErrChainID", id, err)
		}
	}
	store := openStore(t)
	if _, err := Open(t.Context(), store); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("an empty store: %v, want kv.ErrNotFound", err)
	}
	if _, err := Create(t.Context(), store, "SN_TEST"); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), store, "SN_OTHER"); !errors.Is(err, ErrOtherChain) {
		t.Errorf("another chain: %v, want ErrOtherChain", err)
	}
	batch := store.NewBatch()
	rows.SetFormat(batch, "ashlar-evm-1")
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), store); !errors.Is(err, rows.ErrFormat) {
		t.Errorf("another family: %v, want ErrFormat", err)
	}
}

// TestFormatIsDrawn: docs/format.md draws every table with its number.
func TestFormatIsDrawn(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "format.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range Tables() {
		if line := fmt.Sprintf("| %#02x | `%s` | list |", table.ID, table.Name); !strings.Contains(string(page), line) {
			t.Errorf("docs/format.md has no line that begins with %s", line)
		}
	}
	if !strings.Contains(string(page), "`"+Format+"`") {
		t.Errorf("docs/format.md does not name %s", Format)
	}
}
