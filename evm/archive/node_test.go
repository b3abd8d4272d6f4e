package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/internal/memory"
	"ashlar/kv"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
)

// branchOf makes the RLP of a branch; a child is 0 where there is none, and else a
// hash that is made of it.
func branchOf(t testing.TB, children ...byte) []byte {
	items := make([][]byte, branchChildren+1)
	for i, child := range children {
		if child != 0 {
			items[i] = bytes.Repeat([]byte{child}, common.HashLength)
		}
	}
	return mustEncode(t, items)
}

// stepsOf answers for every node alike.
type stepsOf int

func (s stepsOf) steps([]byte, uint64) (int, error) { return int(s), nil }
func (s stepsOf) wrote([]byte, uint64, int)         {}

// TestNodeRow: which rows a change of a node writes.
func TestNodeRow(t *testing.T) {
	leaf := func(rest, value string) []byte { return mustEncode(t, []string{rest, value}) }
	hash := func(of byte) string { return "\xa0" + string(bytes.Repeat([]byte{of}, common.HashLength)) }
	full := branchOf(t, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
	oneOther := branchOf(t, 1, 2, 3, 4, 5, 6, 7, 8, 9, 99, 11, 12, 13, 14, 15, 16)
	eightOther := branchOf(t, 21, 22, 23, 24, 25, 26, 27, 28, 9, 10, 11, 12, 13, 14, 15, 16)
	two, three := branchOf(t, 1, 2), branchOf(t, 1, 2, 0, 4)
	whole := func(blob []byte) string { return "\x00" + string(blob) }
	for _, test := range []struct {
		name      string
		blob      []byte
		prev      []byte
		steps     int // of the row before
		value     string
		unwritten bool
	}{
		{name: "a new branch", blob: full, value: whole(full)},
		{name: "a branch as it was", blob: full, prev: full, unwritten: true},
		{name: "one child of a branch", blob: oneOther, prev: full, value: "\x02\x01\x02\x00" + hash(99)},
		{name: "one child of a difference", blob: oneOther, prev: full, steps: 3, value: "\x02\x04\x02\x00" + hash(99)},
		{name: "one child after as many differences as may be", blob: oneOther, prev: full, steps: maxSteps, value: whole(oneOther)},
		{name: "a child more", blob: three, prev: two, value: "\x02\x01\x00\x08" + hash(4)},
		{name: "a child less", blob: two, prev: three, value: "\x02\x01\x00\x08\x80"},
		{name: "more than half of a branch", blob: eightOther, prev: full, value: whole(eightOther)},
		{name: "a branch in a leaf's place", blob: full, prev: leaf("\x20\x12", "a"), value: whole(full)},
		{name: "a branch in an extension's place", blob: full, prev: leaf("\x00\x12", hash(1)), value: whole(full)},
		{name: "an extension", blob: leaf("\x00\x12", hash(1)), value: whole(leaf("\x00\x12", hash(1)))},
		{name: "an extension in a branch's place", blob: leaf("\x00\x12", hash(1)), prev: full, value: whole(leaf("\x00\x12", hash(1)))},
		{name: "a new leaf", blob: leaf("\x20\x12", "value"), value: "\x01\x20\x12"},
		{name: "a leaf with no rest of its key", blob: leaf("\x20", "a"), value: "\x01\x20"},
		{name: "a leaf's value", blob: leaf("\x20\x12", "b"), prev: leaf("\x20\x12", "a"), unwritten: true},
		{name: "a leaf's key", blob: leaf("\x3a\x12", "a"), prev: leaf("\x20\x12", "a"), value: "\x01\x3a\x12"},
		{name: "a leaf in a branch's place", blob: leaf("\x20\x12", "a"), prev: full, value: "\x01\x20\x12"},
		{name: "a node that is gone", prev: full, value: ""},
	} {
		value, write, err := appendNode(nil, nil, 0, evm.Node{Blob: test.blob, Prev: test.prev}, stepsOf(test.steps))
		if err != nil || write == test.unwritten || string(value) != test.value {
			t.Errorf("%s: %x, %v, %v, want %x, %v", test.name, value, write, err, test.value, !test.unwritten)
		}
	}
}

// nodeRows are the rows of one node, by block.
type nodeRows struct {
	kv.Reader
	rows map[uint64]string
}

func (n nodeRows) Descend(_ context.Context, _ *kv.Table, _ []byte, at uint64, found func(uint64, []byte) (bool, error)) error {
	for _, sort := range slices.Backward(slices.Sorted(maps.Keys(n.rows))) {
		if sort > at {
			continue
		}
		row := []byte(n.rows[sort])
		enough, err := found(sort, row)
		if clear(row); enough || err != nil { // it was valid only for the call
			return err
		}
	}
	return nil
}

// TestNewestNode: the versions of a branch, out of rows as they are and as they must not be.
func TestNewestNode(t *testing.T) {
	hash := func(of byte) string { return "\xa0" + string(bytes.Repeat([]byte{of}, common.HashLength)) }
	first := "\x00" + string(branchOf(t, 1, 2))
	one, two := "\x02\x01\x00\x03"+hash(11)+hash(12), "\x02\x02\x00\x05"+"\x80"+hash(23)
	corrupt := "corrupt"
	fullWith := func(children ...byte) string {
		return "\x00" + string(branchOf(t, append(children, []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}[len(children):]...)...))
	}
	full, broken := fullWith(), []byte(fullWith())
	broken[1+maxListHead+childBytes]--
	for _, test := range []struct {
		name string
		rows map[uint64]string
		at   uint64
		want string
	}{
		{"whole", map[uint64]string{5: first}, 9, "5" + first},
		{"none yet", map[uint64]string{5: first}, 4, "none"},
		{"gone", map[uint64]string{5: first, 7: ""}, 9, "7"},
		{"a leaf", map[uint64]string{5: first, 7: "\x01\x20"}, 9, "7\x01\x20"},
		{"a difference", map[uint64]string{5: first, 7: one}, 9, "7\x00" + string(branchOf(t, 11, 12))},
		{"a difference of a difference", map[uint64]string{5: first, 7: one, 9: two}, 9, "9\x00" + string(branchOf(t, 0, 12, 23))},
		{"as of before the differences", map[uint64]string{5: first, 7: one, 9: two}, 6, "5" + first},
		{"a difference of a full branch", map[uint64]string{5: full, 7: one}, 9, "7" + fullWith(11, 12)},
		{"a child of a full branch twice", map[uint64]string{5: full, 7: one, 9: "\x02\x02\x00\x02" + hash(32)}, 9, "9" + fullWith(11, 32)},
		{"a child less than a full branch", map[uint64]string{5: full, 7: one, 9: two}, 9, "9" + fullWith(0, 12, 23)},
		{"on a branch as long as a full one", map[uint64]string{5: string(broken), 7: one}, 9, corrupt},
		{"nothing below", map[uint64]string{7: one}, 9, corrupt},
		{"a row is missing at the end", map[uint64]string{7: one, 9: two}, 9, corrupt},
		{"a row is missing between", map[uint64]string{5: first, 9: two}, 9, corrupt},
		{"a row too many", map[uint64]string{5: first, 6: one, 7: one}, 9, corrupt},
		{"on a node that is gone", map[uint64]string{5: "", 7: one}, 9, corrupt},
		{"on a leaf", map[uint64]string{5: "\x01\x20", 7: one}, 9, corrupt},
		{"on an extension", map[uint64]string{5: "\x00" + string(mustEncode(t, []string{"\x00\x12", hash(1)})), 7: one}, 9, corrupt},
		{"of too many steps", map[uint64]string{5: first, 7: "\x02\x08\x00\x01" + hash(1)}, 9, corrupt},
		{"without steps", map[uint64]string{5: first, 7: "\x02\x00\x00\x01" + hash(1)}, 9, corrupt},
		{"without changes", map[uint64]string{5: first, 7: "\x02\x01\x00\x00" + hash(1)}, 9, corrupt},
		{"a child too few", map[uint64]string{5: first, 7: "\x02\x01\x00\x03" + hash(1)}, 9, corrupt},
		{"a child too many", map[uint64]string{5: first, 7: "\x02\x01\x00\x03" + hash(1) + hash(1) + hash(1)}, 9, corrupt},
		{"a child too long", map[uint64]string{5: first, 7: "\x02\x01\x00\x01" + "\xa1" + hash(1)}, 9, corrupt},
		{"cut short", map[uint64]string{5: first, 7: "\x02\x01"}, 9, corrupt},
	} {
		value, since, err := NewestNode(t.Context(), nodeRows{rows: test.rows}, []byte{0}, test.at, []byte("dst"))
		got := fmt.Sprint(since) + string(value[3:])
		switch {
		case errors.Is(err, kv.ErrNotFound):
			got = "none"
		case errors.Is(err, ErrCorrupt):
			got = corrupt
		case err != nil:
			t.Fatal(err)
		}
		if got != test.want || string(value[:3]) != "dst" || err != nil && len(value) != 3 {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// encodedBlock is a block whose rows were made before they were appended.
type encodedBlock struct {
	delta *evm.Delta
	rows  []encodedRow
}

type encodedRow struct {
	table            *kv.Table
	partition, value []byte
	sort             uint64
}

func (e *encodedBlock) Ref() chain.Ref      { return e.delta.Ref() }
func (e *encodedBlock) Parent() common.Hash { return e.delta.Block.ParentHash() }

func (e *encodedBlock) PutRows(to kv.Putter) {
	for _, r := range e.rows {
		to.Put(r.table, r.partition, r.sort, r.value)
	}
}

func (e *encodedBlock) Put(table *kv.Table, partition []byte, sort uint64, value []byte) {
	e.rows = append(e.rows, encodedRow{table, bytes.Clone(partition), bytes.Clone(value), sort})
}

// TestNodeRowsAgree: blocks have the same rows however they come: one by one or in
// groups, by one process or several, as deltas or encoded.
func TestNodeRowsAgree(t *testing.T) {
	for _, every := range []uint64{wholeEvery, 8} {
		t.Run(fmt.Sprint("whole every ", every), func(t *testing.T) {
			SetWholeEvery(t, every)
			checkNodeRows(t)
		})
	}
}

func checkNodeRows(t *testing.T) {
	g := newGrower(t, 800)
	for range 120 {
		g.block()
	}
	want := nodeRowsOf(t, grown(t, g))
	differences := 0
	for _, row := range want {
		if len(row) > 0 && row[0] == nodeDifference {
			differences++
			if d, err := decodeDifference([]byte(row)); err != nil || d.steps > maxSteps {
				t.Errorf("a difference of %d steps, %v", d.steps, err)
			}
		}
	}
	if differences < len(want)/12 {
		t.Errorf("%d of %d rows are differences, the test shows little", differences, len(want))
	}
	for round := range 4 {
		a, err := Create(t.Context(), openStore(t, vfs.NewMem()), testGenesis())
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(g.blocks); {
			n := 1
			switch choice := g.random.IntN(4); {
			case choice == 0 && at > 0:
				encoded := &encodedBlock{delta: g.blocks[at]}
				difficulty := a.settled.Load().totalDifficulty
				if err = a.Encode(t.Context(), encoded, encoded.delta, difficulty.Add(difficulty, encoded.delta.Block.Difficulty())); err == nil {
					err = a.AppendEncoded(t.Context(), encoded)
				}
			case choice == 1 && at > 0:
				a, err = Open(t.Context(), a.store)
				n = 0
			default:
				n = min(1+g.random.IntN(9), len(g.blocks)-at)
				err = a.Append(t.Context(), g.blocks[at:at+n]...)
			}
			if err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if got := nodeRowsOf(t, a); !maps.Equal(got, want) {
			t.Errorf("round %d: other rows: %d, want %d", round, len(got), len(want))
		}
	}
}

func nodeRowsOf(t *testing.T, a *Archive) map[string]string {
	t.Helper()
	all := make(map[string]string)
	for row, err := range a.store.Walk(t.Context(), trieNodes, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("%x at %d", row.Partition, row.Sort)] = string(row.Value)
	}
	return all
}

// TestRememberedSteps: what is not remembered any more is read.
func TestRememberedSteps(t *testing.T) {
	g := newGrower(t, 801)
	for range 40 {
		g.block()
	}
	a := grown(t, g)
	state := a.StateAt(uint64(len(g.blocks) - 1))
	stored := storedSteps{t.Context(), state}
	var r rememberedSteps
	r.begin(t.Context(), state)
	seen := make(map[int]bool)
	for row, err := range a.store.Walk(t.Context(), trieNodes, 0) {
		if err != nil {
			t.Fatal(err)
		}
		want, err := stored.steps(row.Partition, state.number+1)
		if err != nil {
			t.Fatal(err)
		}
		if node, _, err := NewestNode(t.Context(), a.store, row.Partition, state.number, nil); err != nil {
			t.Fatal(err)
		} else if len(node) == 0 || node[0] != nodeWhole {
			if want != maxSteps {
				t.Errorf("%x: %d steps to a branch that is not there", row.Partition, want)
			}
			continue
		}
		seen[want] = true
		if got, err := r.steps(row.Partition, state.number+1); err != nil || got != want {
			t.Errorf("%x: %d steps, %v, want %d", row.Partition, got, err, want)
		}
	}
	if len(seen) < maxSteps/2 {
		t.Errorf("only these steps were seen: %v", seen)
	}
	for i := range rememberedNodes + 1 {
		r.wrote(fmt.Append(nil, i), state.number+1, i%5)
	}
	for range 2 { // the second generation forgets the first
		if got, err := r.steps([]byte("123"), state.number+1); err != nil || got != 3 {
			t.Errorf("remembered: %d steps, %v, want 3", got, err)
		}
		r.begin(t.Context(), state)
	}
}

// FuzzDifference reads a difference and the row that it stands on.
func FuzzDifference(f *testing.F) {
	full, other := branchOf(f, 1, 2, 3), branchOf(f, 1, 9, 3, 4)
	before, _ := splitBranch(full)
	after, _ := splitBranch(other)
	f.Add(appendDifference(nil, &before, &after, 1), append([]byte{nodeWhole}, full...))
	f.Add([]byte{nodeDifference, 1, 0, 1, 0x80}, append([]byte{nodeWhole}, branchOf(f)...))
	f.Add([]byte{nodeDifference, 1, 0, 1, 0xc1, 0x80}, append([]byte{nodeWhole}, branchOf(f)...))
	f.Fuzz(func(t *testing.T, row, below []byte) {
		memory.Within(t, memory.Slack+rowFactor*(len(row)+len(below)), func() {
			value, since, err := NewestNode(t.Context(), nodeRows{rows: map[uint64]string{4: string(row), 3: string(below)}}, nil, math.MaxUint64, nil)
			corrupt(t, err)
			if err != nil {
				return
			}
			if since != 4 {
				t.Fatalf("the newest row is that of block %d", since)
			}
			if len(row) == 0 || row[0] != nodeDifference {
				return
			}
			whole, ok := splitBranch(value[1:])
			if value[0] != nodeWhole || !ok {
				t.Fatalf("%x is no branch", value)
			}
			d, err := decodeDifference(row)
			if err != nil {
				t.Fatal(err)
			}
			for i, child := range d.children {
				if child != nil && !bytes.Equal(whole[i], child) {
					t.Fatalf("child %d is %x, the difference says %x", i, whole[i], child)
				}
			}
		})
	})
}
