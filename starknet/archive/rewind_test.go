package archive

import (
	"errors"
	"fmt"
	"maps"
	"testing"

	"ashlar/history/audit"
	"ashlar/history/rewind"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/starknet"
)

// everyRow returns all rows of a store, of whatever table: also of one that the list of
// tables lacks.
func everyRow(t *testing.T, store kv.Store) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for id := 1; id < 1<<8; id++ {
		for row, err := range store.Walk(t.Context(), &kv.Table{ID: byte(id), Name: "any", Kind: kv.List}, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%#x %x %#x", id, row.Partition, row.Sort)] = string(row.Value)
		}
	}
	return all
}

// TestRewind takes an archive back to each of its blocks, where it has the rows of a new
// archive with these blocks only, and appends the rest again.
func TestRewind(t *testing.T) {
	const first = 1_000
	blocks := busy(makeBlocks(first, 40))
	whole := everyRow(t, holding(t, blocks).store)
	store := openStore(t)
	a, err := Create(t.Context(), store, "SN_TEST")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Append(t.Context(), blocks...); err != nil {
		t.Fatal(err)
	}
	for left := len(blocks) - 1; left > 0; left -= 3 {
		done, err := Rewind(t.Context(), store, first+uint64(left)-1, new(audit.Progress))
		if err != nil {
			t.Fatal(err)
		}
		if done.To != blocks[left-1].Ref() || done.Rows == 0 {
			t.Errorf("back to block %s: %+v", blocks[left-1].Ref(), done)
		}
		if !maps.Equal(everyRow(t, store), everyRow(t, holding(t, blocks[:left]).store)) {
			t.Fatalf("back to block %d: the rows differ from those of a new archive", first+left-1)
		}
	}
	if a, err = Open(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	have := a.Span().Last.Number - first + 1
	if err := a.Append(t.Context(), blocks[have:]...); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(everyRow(t, store), whole) {
		t.Error("the rows differ after the blocks were appended again")
	}
	var before *BeforeFirst
	if _, err := Rewind(t.Context(), store, first-1, nil); !errors.As(err, &before) {
		t.Errorf("back to before the first block: %v, want BeforeFirst", err)
	}
	if _, err := Rewind(t.Context(), store, first+1_000, nil); !errors.Is(err, rewind.ErrNotSettled) {
		t.Errorf("forward: %v, want ErrNotSettled", err)
	}
}

// TestRewinding: an archive with a rewind under way does not open.
func TestRewinding(t *testing.T) {
	store := openStore(t)
	a, err := Create(t.Context(), store, "SN_TEST")
	if err != nil {
		t.Fatal(err)
	}
	blocks := makeBlocks(0, 3)
	if err := a.Append(t.Context(), blocks...); err != nil {
		t.Fatal(err)
	}
	batch := store.NewBatch()
	rows.SetRewindTarget(batch, blocks[1].Ref())
	if err := errors.Join(store.Write(t.Context(), batch), rows.SetEpoch(t.Context(), store, 0, 1)); err != nil {
		t.Fatal(err)
	}
	_, opening := Open(t.Context(), store)
	_, creating := Create(t.Context(), store, "SN_TEST")
	for what, err := range map[string]error{"Open": opening, "Create": creating, "Accept": Accept(t.Context(), store, "")} {
		if !errors.Is(err, rows.ErrRewinding) {
			t.Errorf("%s: %v, want ErrRewinding", what, err)
		}
	}
	if _, err := Rewind(t.Context(), store, 1, nil); err != nil {
		t.Fatal(err)
	}
	checkSpan(t, store, blocks[:2])
}

func checkSpan(t *testing.T, store kv.Store, blocks []*starknet.Block) {
	t.Helper()
	a, err := Open(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	if span, last := a.Span(), blocks[len(blocks)-1].Ref(); span.Last != last {
		t.Errorf("the last block is %s, want %s", span.Last, last)
	}
}
