package rowcache_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"ashlar/internal/await"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/kv/rowcache"

	"github.com/cockroachdb/pebble/v2/vfs"
)

var (
	versions = &kv.Table{ID: 0x60, Name: "versions", Kind: kv.Versions}
	list     = &kv.Table{ID: 0x61, Name: "list", Kind: kv.List, IndexBits: 2}
	named    = &kv.Table{ID: 0x62, Name: "named", Kind: kv.List, Expected: true}
	single   = &kv.Table{ID: 0x63, Name: "single", Kind: kv.List, Expected: true, IndexBits: 2, Single: true}
	tables   = []*kv.Table{versions, list, named, single}
)

func cache(t *testing.T, below kv.Store, o rowcache.Options) *rowcache.Store {
	t.Helper()
	cached, err := rowcache.New(t.Context(), shared{below}, o)
	if err != nil {
		t.Fatal(err)
	}
	return cached
}

// shared is a store that the cache does not close.
type shared struct{ kv.Store }

func (shared) Close() error { return nil }

// embedded opens a store on disk.
func embedded(dir string, o kv.Options) (kv.Store, error) {
	return pebble.Open(pebble.Options{Path: dir, Options: o})
}

func open(t *testing.T) kv.Store {
	t.Helper()
	s, err := pebble.Open(pebble.Options{Path: "rows", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

type written struct {
	table *kv.Table
	kv.Row
}

// block returns rows of a block.
func block(random *rand.Rand, number uint64) (rows []written) {
	for range random.IntN(12) {
		t := tables[random.IntN(len(tables))]
		sort := number<<t.IndexBits | uint64(random.IntN(1<<t.IndexBits))
		value := fmt.Sprintf("%s %d", t.Name, sort)
		rows = append(rows, written{t, kv.Row{Partition: []byte{byte(random.IntN(5))}, Sort: sort, Value: []byte(value)}})
	}
	return rows
}

func yield(rows []written) iter.Seq2[*kv.Table, kv.Row] {
	return func(yield func(*kv.Table, kv.Row) bool) {
		for _, r := range rows {
			if !yield(r.table, r.Row) {
				return
			}
		}
	}
}

// TestModel compares random reads with those of the store below, while blocks are written
// and settle. The memory is so small that entries are evicted.
func TestModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if seed%5 != 0 { // others start no other goroutines
				raced.Skip(t)
			}
			o := rowcache.Options{Bytes: 8000}
			if seed >= 15 {
				o.Bytes, o.Disk = 1, rowcache.DiskOptions{Dir: t.TempDir(), Bytes: rowcache.LeastDiskBytes, Open: embedded, Store: "model"}
			}
			testModel(t, rand.New(rand.NewPCG(seed, 1)), o)
		})
	}
}

func testModel(t *testing.T, random *rand.Rand, o rowcache.Options) {
	below := open(t)
	cached := cache(t, below, o)
	defer cached.Close()
	var unsettled []written
	settled := uint64(0)
	for number := uint64(0); number < 60; number++ {
		rows := block(random, number)
		b := below.NewBatch()
		for _, r := range rows {
			b.Put(r.table, r.Partition, r.Sort, r.Value)
		}
		if err := below.Write(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		unsettled = append(unsettled, rows...)
		switch random.IntN(8) {
		case 0, 1, 2, 3: // its rows are known
			cached.Follow(number, yield(unsettled))
			settled, unsettled = number, nil
		case 4:
			cached.Follow(number, nil)
			settled, unsettled = number, nil
		}
		for range 20 * random.IntN(4) { // none, too: so several blocks settle between two reads
			compare(t, random, cached, below, number, settled)
		}
	}
	if stats := cached.Stats(); stats.CacheHits == 0 || stats.CacheMisses == 0 {
		t.Errorf("%d hits, %d misses, expected some of each", stats.CacheHits, stats.CacheMisses)
	}
}

// compare makes the same read in both stores.
func compare(t *testing.T, random *rand.Rand, cached, below kv.Store, head, settled uint64) {
	t.Helper()
	table, partition := tables[random.IntN(len(tables))], []byte{byte(random.IntN(6))}
	at := random.Uint64N(head+2) << table.IndexBits
	if random.IntN(2) == 0 {
		at = (settled+1)<<table.IndexBits - 1
	}
	if random.IntN(10) == 0 {
		at = ^uint64(0)
	}
	reads := []func(kv.Store) string{
		func(s kv.Store) string { return get(s, table, partition, at) },
		func(s kv.Store) string { return newest(s, table, partition, at) },
		func(s kv.Store) string { return many(s, table, partition, at) },
	}
	from, seek, most := random.Uint64N(at/2+1), random.Uint64N(at/2+1), random.IntN(9)
	reads = append(reads, func(s kv.Store) string { return scan(s, table, partition, from, at, seek, most) })
	if table.Kind == kv.Versions {
		reads = append(reads, func(s kv.Store) string { return descend(s, table, partition, at, most) })
	}
	i := random.IntN(len(reads))
	if random.IntN(4) == 0 {
		cached.(kv.Prefetcher).Prefetch(context.Background(), []kv.Want{{Table: table, Partition: partition, To: at, From: from}, {Table: versions, Partition: partition, To: at, Newest: 1 + random.IntN(3)}})
	}
	if got, want := reads[i](cached), reads[i](below); got != want {
		t.Fatalf("head %d, settled %d: read %d of %s %x at %d: %s, expected %s", head, settled, i, table.Name, partition, at, got, want)
	}
}

func get(s kv.Store, table *kv.Table, partition []byte, sort uint64) string {
	value, err := s.Get(context.Background(), table, partition, sort, []byte("x"))
	return fmt.Sprintf("%q %v", value, err)
}

func newest(s kv.Store, table *kv.Table, partition []byte, at uint64) string {
	value, sort, err := s.Newest(context.Background(), table, partition, at, []byte("x"))
	return fmt.Sprintf("%q %d %v", value, sort, err)
}

func many(s kv.Store, table *kv.Table, partition []byte, at uint64) string {
	keys := []kv.Key{{Partition: partition, Sort: at}, {Partition: []byte{0}, Sort: at / 2}, {Partition: []byte{1}, Sort: at / 3}}
	var one, two [3]string
	err := s.GetMany(context.Background(), table, keys, func(i int, value []byte) error { one[i] = string(value); return nil })
	err = errors.Join(err, s.NewestMany(context.Background(), table, keys, func(i int, sort uint64, value []byte) error {
		two[i] = fmt.Sprint(sort, string(value))
		return nil
	}))
	return fmt.Sprint(one, two, err)
}

func scan(s kv.Store, table *kv.Table, partition []byte, from, to, seek uint64, most int) (out string) {
	c := s.Scan(context.Background(), table, partition, from, to)
	for range most {
		if !c.Next() {
			break
		}
		out += fmt.Sprintf("%d=%s ", c.Sort(), c.Value())
	}
	if c.Seek(seek) {
		out += fmt.Sprintf("seek %d=%s ", c.Sort(), c.Value())
	}
	for c.Next() {
		out += fmt.Sprintf("%d=%s ", c.Sort(), c.Value())
	}
	return out + fmt.Sprint(c.Seek(0), c.Close())
}

func descend(s kv.Store, table *kv.Table, partition []byte, at uint64, most int) (out string) {
	err := s.Descend(context.Background(), table, partition, at, func(sort uint64, value []byte) (bool, error) {
		out += fmt.Sprintf("%d=%s ", sort, value)
		most--
		return most <= 0, nil
	})
	return out + fmt.Sprint(err)
}

// TestFollow checks what is known at the head without another read.
func TestFollow(t *testing.T) {
	below := open(t)
	cached := cache(t, below, rowcache.Options{})
	first := []written{{versions, kv.Row{Partition: []byte("a"), Sort: 1, Value: []byte("old")}}, {versions, kv.Row{Partition: []byte("b"), Sort: 1, Value: []byte("old")}}}
	second := []written{{versions, kv.Row{Partition: []byte("b"), Sort: 2, Value: []byte("new")}}, {named, kv.Row{Partition: []byte("c"), Sort: 2, Value: []byte("block")}}}
	b := below.NewBatch()
	for _, r := range first {
		b.Put(r.table, r.Partition, r.Sort, r.Value)
	}
	if err := below.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	cached.Follow(1, nil)
	for _, partition := range []string{"a", "b", "none"} {
		newest(cached, versions, []byte(partition), 1)
	}
	cached.Follow(2, yield(second)) // which the store below does not even have
	before := cached.Stats().CacheMisses
	for partition, want := range map[string]string{
		"a": `"xold" 1 <nil>`, "b": `"xnew" 2 <nil>`, "none": `"x" 0 kv: not found`,
	} {
		if got := newest(cached, versions, []byte(partition), 2); got != want {
			t.Errorf("newest of %s: %s, expected %s", partition, got, want)
		}
	}
	if got := get(cached, named, []byte("c"), 2); got != `"xblock" <nil>` {
		t.Errorf("row of the last block: %s", got)
	}
	if got := newest(cached, versions, []byte("b"), 1); got != `"xold" 1 <nil>` {
		t.Errorf("newest at the block before: %s", got)
	}
	if after := cached.Stats().CacheMisses; after != before {
		t.Errorf("%d reads of the store, expected none", after-before)
	}
}

// TestDisk opens the cache again: rows that were kept on disk are found without the store,
// unless it is another store now.
func TestDisk(t *testing.T) {
	below := open(t)
	var rows []written
	b := below.NewBatch()
	for number := range uint64(50) {
		for _, table := range tables {
			r := written{table, kv.Row{Partition: []byte{byte(number % 3)}, Sort: number << table.IndexBits, Value: fmt.Append(nil, number)}}
			rows = append(rows, r)
			b.Put(r.table, r.Partition, r.Sort, r.Value)
		}
	}
	if err := below.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	o := rowcache.Options{Disk: rowcache.DiskOptions{Dir: t.TempDir(), Bytes: rowcache.LeastDiskBytes, Open: embedded, Store: "first"}}
	read := func(name string) (answers string, misses int64) {
		o.Disk.Store = name
		cached := cache(t, below, o)
		cached.Follow(49, nil)
		for _, r := range rows {
			answers += newest(cached, versions, r.Partition, min(r.Sort, 49)) + get(cached, r.table, r.Partition, r.Sort) +
				scan(cached, list, r.Partition, 0, min(r.Sort, 199), 0, 100) + descend(cached, versions, r.Partition, min(r.Sort, 49), 4)
		}
		misses = cached.Stats().CacheMisses
		if err := cached.Close(); err != nil {
			t.Fatal(err)
		}
		return answers, misses
	}
	want, first := read("first")
	got, again := read("first")
	if got != want || again > first/20 || first == 0 {
		t.Errorf("answers are the same: %v; reads of the store: %d, and %d with rows on disk, expected next to none", got == want, first, again)
	}
	if got, other := read("second"); got != want || other != first {
		t.Errorf("answers are the same: %v; %d reads of the store with rows of another one, expected %d", got == want, other, first)
	}
}

// TestDamagedDisk: a cache whose files are damaged is made again; files of others stay.
func TestDamagedDisk(t *testing.T) {
	below, dir := open(t), t.TempDir()
	keepMuch(t, below, dir)
	manifests, err := filepath.Glob(filepath.Join(dir, "*", "MANIFEST-*"))
	if err != nil || len(manifests) == 0 {
		t.Fatalf("%v, %v, expected manifests", manifests, err)
	}
	for _, file := range manifests {
		if err := os.WriteFile(file, []byte("not a manifest"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	keepMuch(t, below, dir)
	made, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(made) != 2 {
		t.Fatalf("%v, %v, expected two stores", made, err)
	}
	letter := filepath.Join(made[0], "letter.txt")
	if err := os.WriteFile(letter, []byte("Dear reader"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := rowcache.Options{Disk: rowcache.DiskOptions{Dir: dir, Bytes: rowcache.LeastDiskBytes, Open: embedded, Store: "x"}}
	if _, err := rowcache.New(t.Context(), shared{below}, o); !errors.Is(err, kv.ErrForeign) {
		t.Errorf("with a foreign file: %v, expected %v", err, kv.ErrForeign)
	}
	if _, err := os.Stat(letter); err != nil {
		t.Error(err)
	}
}

// TestDiskSpace keeps more than there is space for.
func TestDiskSpace(t *testing.T) {
	below, dir := open(t), t.TempDir()
	keepMuch(t, below, dir)
	var size int64
	if err := filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		size += info.Size()
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if size < rowcache.LeastDiskBytes/4 || size > 2*rowcache.LeastDiskBytes {
		t.Errorf("%d bytes on disk, expected about %d at most", size, rowcache.LeastDiskBytes)
	}
}

// TestDiskSpaceAfterKill: a process was killed when it had made the next store and not named it.
// There are two stores again once more was kept.
func TestDiskSpaceAfterKill(t *testing.T) {
	below, dir := open(t), t.TempDir()
	stores := func() []string {
		found, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil || len(found) != 2 {
			t.Fatalf("%v, %v, want two stores", found, err)
		}
		return found
	}
	keepMuch(t, below, dir)
	last, err := strconv.ParseUint(filepath.Base(stores()[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	made, err := embedded(filepath.Join(dir, fmt.Sprintf("%08d", last+1)), kv.Options{})
	if err == nil {
		err = made.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	keepMuch(t, below, dir)
	stores()
}

// keepMuch keeps several times what there is space for.
func keepMuch(t *testing.T, below kv.Store, dir string) {
	t.Helper()
	cached := cache(t, below, rowcache.Options{Bytes: 1, Disk: rowcache.DiskOptions{Dir: dir, Bytes: rowcache.LeastDiskBytes, Open: embedded, Store: "x"}})
	random := rand.NewChaCha8([32]byte{})
	value := make([]byte, 1<<20)
	for number := range uint64(80) {
		if _, err := random.Read(value); err != nil {
			t.Fatal(err)
		}
		cached.Follow(number, yield([]written{{named, kv.Row{Partition: []byte("p"), Sort: number, Value: value}}}))
		await.Until(t, "an empty queue", func() bool { return cached.Queued() == 0 }) // a full one would drop rows
	}
	if err := cached.Close(); err != nil {
		t.Fatal(err)
	}
}
