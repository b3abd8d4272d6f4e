package clone

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"testing"

	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var (
	versions = &kv.Table{ID: 0x81, Name: "versions", Kind: kv.Versions}
	list     = &kv.Table{ID: 0x82, Name: "list", Kind: kv.List}
	empty    = &kv.Table{ID: 0x83, Name: "empty", Kind: kv.List}
)

func tables() []*kv.Table { return []*kv.Table{versions, list, empty} }

func open(t *testing.T) kv.Store {
	t.Helper()
	s, err := pebble.Open(pebble.Options{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

const (
	partitions = 40
	deep       = 30 // rows of a partition
)

// original returns a store with two tables and pointers.
func original(t *testing.T) kv.Store {
	t.Helper()
	s := open(t)
	b := s.NewBatch()
	for _, table := range tables()[:2] {
		for p := range partitions {
			for sort := range uint64(deep) {
				b.Put(table, []byte(fmt.Sprint("key ", p))[:4*min(p, 1)+p/10], sort, fmt.Append(nil, p, sort))
				b.Put(table, fmt.Append(nil, p), sort, bytes.Repeat([]byte{byte(p)}, 10*int(sort)))
			}
		}
	}
	b.SetPointer("head", []byte("12"))
	b.SetPointer("format", []byte("test"))
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return s
}

// contents returns all rows and pointers of a store as text.
func contents(t *testing.T, s kv.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, table := range tables() {
		for row, err := range s.Walk(t.Context(), table, 0) {
			if err != nil {
				t.Fatal(err)
			}
			all[fmt.Sprintf("%s %x %d", table.Name, row.Partition, row.Sort)] = string(row.Value)
		}
	}
	pointers, err := s.Pointers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range pointers {
		if name != Pointer {
			all["pointer "+name] = string(value)
		}
	}
	return all
}

func TestRun(t *testing.T) {
	from, to := original(t), open(t)
	progress := new(Progress)
	if _, err := Run(t.Context(), from, to, Options{Tables: tables(), Progress: progress}); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(contents(t, from), contents(t, to)) {
		t.Error("the copy has other contents")
	}
	if complete, err := Complete(t.Context(), from, to); !complete || err != nil {
		t.Errorf("Complete: %t, %v", complete, err)
	}
	if stage, _, rows, _ := progress.Now(); stage == nil || stage.Task != "verifying" || rows != 2*uint64(len(contents(t, from))-2) {
		t.Errorf("progress at the end: %+v, %d rows", stage, rows)
	}
	// A copy can be copied, and what it is a copy of is not part of it.
	third := open(t)
	if _, err := Run(t.Context(), to, third, Options{Tables: tables()}); err != nil {
		t.Fatal(err)
	}
	if complete, err := Complete(t.Context(), from, third); !complete || err != nil {
		t.Errorf("Complete of a copy of a copy: %t, %v", complete, err)
	}
	set(t, from, "head", "13")
	if complete, err := Complete(t.Context(), from, to); complete || err != nil {
		t.Errorf("Complete after a change of the original: %t, %v", complete, err)
	}
}

func set(t *testing.T, s kv.Store, pointer, value string) {
	t.Helper()
	b := s.NewBatch()
	b.SetPointer(pointer, []byte(value))
	if err := s.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

func TestKeep(t *testing.T) {
	from, to := original(t), open(t)
	keep := func(table *kv.Table, sort uint64) bool { return table == versions && sort < 3 }
	if _, err := Run(t.Context(), from, to, Options{Tables: tables(), Keep: keep}); err != nil {
		t.Fatal(err)
	}
	want := contents(t, from)
	maps.DeleteFunc(want, func(key, _ string) bool {
		var sort uint64
		_, err := fmt.Sscanf(key[max(0, len(key)-2):], "%d", &sort)
		return key[:4] == "list" || key[:4] == "vers" && (err != nil || sort >= 3)
	})
	if !maps.Equal(contents(t, to), want) {
		t.Errorf("%d rows and pointers, expected %d", len(contents(t, to)), len(want))
	}
}

// spy counts the rows that are read, and fails or falsifies writes.
type spy struct {
	kv.Store
	walked int
	writes int
	fail   int               // the write to fail; 0: none
	last   map[string]uint64 // greatest sort key that was put, by table and partition
	t      *testing.T
}

var errSpy = errors.New("failed on purpose")

func (s *spy) WalkAfter(ctx context.Context, t *kv.Table, after []byte, from uint64) iter.Seq2[kv.Row, error] {
	return func(yield func(kv.Row, error) bool) {
		for row, err := range s.Store.WalkAfter(ctx, t, after, from) {
			s.walked++
			if !yield(row, err) {
				return
			}
		}
	}
}

func (s *spy) Write(ctx context.Context, b kv.Batch) error {
	if s.writes++; s.writes == s.fail {
		return errSpy
	}
	return s.Store.Write(ctx, b.(spyBatch).Batch)
}

func (s *spy) NewBatch() kv.Batch { return spyBatch{s.Store.NewBatch(), s} }

type spyBatch struct {
	kv.Batch
	*spy
}

// Put checks that the rows of a partition come in ascending order.
func (b spyBatch) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	key := t.Name + string(partition)
	if last, any := b.last[key]; any && sort <= last {
		b.t.Errorf("%s %x: row %d after %d", t.Name, partition, sort, last)
	}
	b.last[key] = sort
	b.Batch.Put(t, partition, sort, value)
}

// TestResume fails each write of a copy, and goes on after it.
func TestResume(t *testing.T) {
	from := original(t)
	want := contents(t, from)
	whole := &spy{Store: from}
	for fail := 1; ; fail++ {
		to := &spy{Store: open(t), fail: fail, t: t, last: map[string]uint64{}}
		source := &spy{Store: from}
		_, err := Run(t.Context(), source, to, Options{Tables: tables(), Progress: new(Progress)})
		if err == nil {
			if fail < 4 {
				t.Errorf("%d writes in all, expected one for each table at least", fail-1)
			}
			whole = source
			break
		}
		if !errors.Is(err, errSpy) {
			t.Fatal(err)
		}
		if pointers, err := to.Pointers(t.Context()); err != nil || len(pointers) > 1 {
			t.Errorf("after %d writes: pointers %q, %v, expected none but the copy's", fail-1, pointers, err)
		}
		if complete, err := Complete(t.Context(), from, to); complete || err != nil {
			t.Errorf("after %d writes: Complete is %t, %v", fail-1, complete, err)
		}
		to.last = map[string]uint64{}
		again := &spy{Store: from}
		if _, err := Run(t.Context(), again, to, Options{Tables: tables()}); err != nil {
			t.Fatalf("after %d writes: %v", fail-1, err)
		}
		if got := contents(t, to); !maps.Equal(got, want) {
			t.Errorf("after %d writes: other contents", fail-1)
		}
		if fail == 3 && again.walked >= source.walked {
			t.Errorf("the second run has read %d rows, the first %d: it did not go on", again.walked, source.walked)
		}
	}
	if whole.walked != len(want)-2 {
		t.Errorf("%d rows read, expected %d", whole.walked, len(want)-2)
	}
}

// A large partition is not held in memory. It is copied in ascending order too.
func TestLargePartition(t *testing.T) {
	from := open(t)
	for sort := range uint64(24) {
		b := from.NewBatch()
		b.Put(versions, []byte("large"), sort, bytes.Repeat([]byte{byte(sort)}, 1<<20))
		for i := range 10 { // before and after it
			b.Put(versions, []byte{byte(30 * i)}, sort, []byte("small"))
		}
		if err := from.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	set(t, from, "head", "1")
	to, counted := &spy{Store: open(t), t: t, last: map[string]uint64{}}, &scanned{Store: from}
	if _, err := Run(t.Context(), counted, to, Options{Tables: tables()}); err != nil {
		t.Fatal(err)
	}
	if counted.scans != 1 {
		t.Errorf("%d partitions were read again, expected the large one alone", counted.scans)
	}
	if !maps.Equal(contents(t, from), contents(t, to)) {
		t.Error("the copy has other contents")
	}
}

func TestRefused(t *testing.T) {
	from, to := original(t), open(t)
	broken := &spy{Store: to, fail: 4, t: t, last: map[string]uint64{}}
	if _, err := Run(t.Context(), from, broken, Options{Tables: tables()}); !errors.Is(err, errSpy) {
		t.Fatal(err)
	}
	b := to.NewBatch()
	b.Put(list, []byte("more"), 1, nil)
	if err := to.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), from, to, Options{Tables: tables()}); !errors.Is(err, ErrDiffers) {
		t.Errorf("with another row: %v, expected ErrDiffers", err)
	}
	set(t, from, "head", "13")
	if _, err := Run(t.Context(), from, to, Options{Tables: tables()}); !errors.Is(err, ErrChanged) {
		t.Errorf("after a change of the original: %v, expected ErrChanged", err)
	}
	foreign := original(t)
	if _, err := Run(t.Context(), from, foreign, Options{Tables: tables()}); err == nil {
		t.Error("a store with other contents is overwritten")
	}
}

// TestDurable: once Run has returned, a crash takes nothing of the copy.
func TestDurable(t *testing.T) {
	from, disk := original(t), vfs.NewCrashableMem()
	to, err := pebble.Open(pebble.Options{Path: "copy", FS: disk, Options: kv.Options{BulkLoad: true}})
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	if _, err := Run(t.Context(), from, to, Options{Tables: tables()}); err != nil {
		t.Fatal(err)
	}
	after, err := pebble.Open(pebble.Options{Path: "copy", FS: disk.CrashClone(vfs.CrashCloneCfg{})})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if complete, err := Complete(t.Context(), from, after); !complete || err != nil {
		t.Errorf("Complete after a crash: %t, %v", complete, err)
	}
	if !maps.Equal(contents(t, from), contents(t, after)) {
		t.Error("the copy has other contents after a crash")
	}
}
