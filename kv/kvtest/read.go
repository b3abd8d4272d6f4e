package kvtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"ashlar/kv"
)

func testGet(t *testing.T, s kv.Store) {
	for _, table := range bothKinds() {
		expect(t, "Get from an empty store", get(s, table, "a", 1), notFound)
		put(t, s, row{table, "a", 5, "five"}, row{table, "a", 7, "seven"})
		expect(t, "Get", get(s, table, "a", 5), `"five"`)
		expect(t, "Get", get(s, table, "a", 7), `"seven"`)
		for _, sort := range []uint64{0, 4, 6, 8} {
			expect(t, fmt.Sprint("Get of no row at ", sort), get(s, table, "a", sort), notFound)
		}
		expect(t, "Get from another partition", get(s, table, "b", 5), notFound)
		expect(t, "Get from another table", get(s, last, "a", 5), notFound)
	}
}

func testNewest(t *testing.T, s kv.Store) {
	for _, table := range bothKinds() {
		expect(t, "Newest of an empty store", newest(s, table, "b", 1), notFound)
		put(t, s,
			row{table, "a", 1, "before"}, row{table, "c", 1, "behind"},
			row{table, "b", 10, "ten"}, row{table, "b", 20, "twenty"}, row{table, "b", 30, "thirty"})
		for at, want := range map[uint64]string{
			0: notFound, 9: notFound,
			10: `10="ten"`, 11: `10="ten"`, 19: `10="ten"`,
			20: `20="twenty"`, 29: `20="twenty"`,
			30: `30="thirty"`, 31: `30="thirty"`, math.MaxUint64: `30="thirty"`,
		} {
			expect(t, fmt.Sprintf("%s: Newest at %d", table.Name, at), newest(s, table, "b", at), want)
		}
		expect(t, "Newest of an absent partition", newest(s, table, "bb", math.MaxUint64), notFound)
	}
}

func testDescend(t *testing.T, s kv.Store) {
	const all = math.MaxInt
	for _, table := range []*kv.Table{versions, expectedVersions} {
		expect(t, "Descend in an empty store", descend(t, s, table, "b", 1, all), "")
		put(t, s,
			row{table, "a", 1, "before"}, row{table, "c", 1, "behind"}, row{table, "bb", 15, "longer"},
			row{table, "b", 0, "zero"}, row{table, "b", 10, "ten"}, row{table, "b", 20, "twenty"}, row{table, "b", math.MaxUint64, "top"})
		for _, c := range []struct {
			at   uint64
			most int
			want string
		}{
			{0, all, `0="zero" `},
			{9, all, `0="zero" `},
			{10, all, `10="ten" 0="zero" `},
			{19, 1, `10="ten" `},
			{20, 2, `20="twenty" 10="ten" `},
			{math.MaxUint64 - 1, all, `20="twenty" 10="ten" 0="zero" `},
			{math.MaxUint64, 1, fmt.Sprintf("%d=%q ", uint64(math.MaxUint64), "top")},
		} {
			expect(t, fmt.Sprintf("%s: Descend from %d, %d rows", table.Name, c.at, c.most), descend(t, s, table, "b", c.at, c.most), c.want)
		}
		expect(t, "Descend below the first row", descend(t, s, table, "a", 0, all), "")
		expect(t, "Descend in an absent partition", descend(t, s, table, "aa", math.MaxUint64, all), "")
	}
	stop, calls := errors.New("stop"), 0
	failing := func(uint64, []byte) (bool, error) { calls++; return false, stop }
	if err := s.Descend(context.Background(), versions, []byte("b"), 20, failing); err != stop || calls != 1 {
		t.Errorf("Descend: %d calls, error %v; expected one call and its error", calls, err)
	}
	if err := s.Descend(context.Background(), list, []byte("b"), 20, failing); err == nil || err == stop {
		t.Errorf("Descend in a List table: %v", err)
	}
}

// testExpected asks tables whose partitions are expected to be there for some
// that are and some that are not.
func testExpected(t *testing.T, s kv.Store) {
	for _, table := range []*kv.Table{expectedVersions, expectedList} {
		expect(t, "Newest of an empty store", newest(s, table, "b", 1), notFound)
		put(t, s, row{table, "a", 1, "one"}, row{table, "c", 1, "one"}, row{table, "c", 3, "three"})
		expect(t, "Get", get(s, table, "c", 3), `"three"`)
		expect(t, "Newest", newest(s, table, "c", 2), `1="one"`)
		expect(t, "Scan", scan(t, s, table, "c", 0, math.MaxUint64), `1="one" 3="three" `)
		for _, absent := range []string{"", "b", "cc", "d"} {
			expect(t, "Get from an absent partition", get(s, table, absent, 1), notFound)
			expect(t, "Newest of an absent partition", newest(s, table, absent, math.MaxUint64), notFound)
			expect(t, "Scan of an absent partition", scan(t, s, table, absent, 0, math.MaxUint64), "")
		}
	}
}

func testSortKeyExtremes(t *testing.T, s kv.Store) {
	const top = math.MaxUint64
	for _, table := range bothKinds() {
		put(t, s,
			row{table, "both", 0, "zero"}, row{table, "both", top, "top"},
			row{table, "low", 0, "zero"}, row{table, "top", top, "top"})
		expect(t, "Get 0", get(s, table, "both", 0), `"zero"`)
		expect(t, "Get top", get(s, table, "both", top), `"top"`)
		expect(t, "Newest at 0", newest(s, table, "both", 0), `0="zero"`)
		expect(t, "Newest below the top", newest(s, table, "both", top-1), `0="zero"`)
		expect(t, "Newest at the top", newest(s, table, "both", top), fmt.Sprintf("%d=%q", uint64(top), "top"))
		expect(t, "Newest at the top of one row at 0", newest(s, table, "low", top), `0="zero"`)
		expect(t, "Newest below one row at the top", newest(s, table, "top", top-1), notFound)
		all := fmt.Sprintf("0=%q %d=%q ", "zero", uint64(top), "top")
		expect(t, "Scan of everything", scan(t, s, table, "both", 0, top), all)
		expect(t, "Scan of 0", scan(t, s, table, "both", 0, 0), `0="zero" `)
		expect(t, "Scan of the top", scan(t, s, table, "both", top, top), fmt.Sprintf("%d=%q ", uint64(top), "top"))
		expect(t, "Scan of all between", scan(t, s, table, "both", 1, top-1), "")
	}
}

// partitions are such that a careless encoding mixes them up: empty, prefixes of
// one another, and with the bytes that encodings use as marks.
func partitions() []string {
	return []string{
		"", "\x00", "\x00\x00", "\x01", "a", "a\x00", "a\x00\x00", "a\x00b", "a\x01", "aa", "a\xff", "b",
		"a\x00\x00\x00\x00\x00\x00\x00\x00\x07\x09", "a\x00\xff\xff\xff\xff\xff\xff\xff\xff\x09", "\x09", "\xff", "\xff\xff",
		strings.Repeat("\x00", kv.MaxPartition), strings.Repeat("\xff", kv.MaxPartition), strings.Repeat("m", kv.MaxPartition-1),
	}
}

func testPartitionsApart(t *testing.T, s kv.Store) {
	for _, table := range bothKinds() {
		for i, p := range partitions() {
			put(t, s, row{table, p, 7, fmt.Sprint("seven of ", i)}, row{table, p, 9, fmt.Sprint("nine of ", i)})
		}
		for i, p := range partitions() {
			seven, nine := fmt.Sprintf("7=%q", fmt.Sprint("seven of ", i)), fmt.Sprintf("9=%q", fmt.Sprint("nine of ", i))
			what := fmt.Sprintf("%s %q", table.Name, p)
			expect(t, what, newest(s, table, p, 6), notFound)
			expect(t, what, newest(s, table, p, 8), seven)
			expect(t, what, newest(s, table, p, math.MaxUint64), nine)
			expect(t, what, scan(t, s, table, p, 0, math.MaxUint64), seven+" "+nine+" ")
			expect(t, what, get(s, table, p, 8), notFound)
		}
	}
}

func testPartitionTooLong(t *testing.T, s kv.Store) {
	ctx := context.Background()
	long := make([]byte, kv.MaxPartition+1)
	b := s.NewBatch()
	b.Put(list, []byte("good"), 1, []byte("v"))
	b.Put(list, long, 1, []byte("v"))
	if err := s.Write(ctx, b); err == nil {
		t.Error("Write of a partition that is too long: no error")
	}
	expect(t, "a row beside the one that is refused", get(s, list, "good", 1), notFound)
	if _, err := s.Get(ctx, list, long, 1, nil); err == nil || errors.Is(err, kv.ErrNotFound) {
		t.Errorf("Get with a partition that is too long: %v", err)
	}
	if err := s.Scan(ctx, list, long, 0, 1).Close(); err == nil {
		t.Error("Scan with a partition that is too long: no error")
	}
	b.Reset()
	b.Put(list, []byte("good"), 1, []byte("v"))
	write(t, s, b)
	expect(t, "after Reset", get(s, list, "good", 1), `"v"`)
}

func testValues(t *testing.T, s kv.Store) {
	rng := rand.NewChaCha8([32]byte{1})
	for _, table := range bothKinds() {
		for i, size := range []int{0, 1, 31, 32, 4095, 4096, 65535, 65536, 1 << 20} {
			value := make([]byte, size)
			_, _ = rng.Read(value) // never fails
			put(t, s, row{table, "p", uint64(i), string(value)})
			got, err := s.Get(context.Background(), table, []byte("p"), uint64(i), nil)
			if err != nil || !bytes.Equal(got, value) {
				t.Errorf("value of %d bytes: got %d bytes, %v", size, len(got), err)
			}
		}
	}
	put(t, s, row{list, "nil", 1, ""})
	expect(t, "an empty value is a row", newest(s, list, "nil", 1), `1=""`)
}

func testDestination(t *testing.T, s kv.Store) {
	ctx := context.Background()
	put(t, s, row{versions, "p", 1, "value"})
	dst := append(make([]byte, 0, 64), "dst-"...)
	check := func(what string, got []byte, err error, want string, wantErr error) {
		t.Helper()
		if string(got) != want || !errors.Is(err, wantErr) {
			t.Errorf("%s: got %q, %v; expected %q, %v", what, got, err, want, wantErr)
		}
	}
	got, err := s.Get(ctx, versions, []byte("p"), 1, dst)
	check("Get", got, err, "dst-value", nil)
	if &got[0] != &dst[0] {
		t.Error("Get did not use the room in dst")
	}
	got, err = s.Get(ctx, versions, []byte("p"), 2, dst)
	check("Get of nothing", got, err, "dst-", kv.ErrNotFound)
	got, _, err = s.Newest(ctx, versions, []byte("p"), 1, dst)
	check("Newest", got, err, "dst-value", nil)
	got, _, err = s.Newest(ctx, versions, []byte("p"), 0, dst)
	check("Newest of nothing", got, err, "dst-", kv.ErrNotFound)

	// What was returned belongs to the caller: later reads leave it alone.
	kept, err := s.Get(ctx, versions, []byte("p"), 1, nil)
	put(t, s, row{versions, "q", 1, "other"})
	expect(t, "another row", get(s, versions, "q", 1), `"other"`)
	check("value kept", kept, err, "value", nil)
}

func testGetMany(t *testing.T, s kv.Store) {
	for _, table := range bothKinds() {
		put(t, s, row{table, "a", 1, "a1"}, row{table, "a", 2, "a2"}, row{table, "b", 1, "b1"})
		keys := []kv.Key{key("b", 1), key("a", 3), key("a", 2), key("x", 1), key("a", 1), key("b", 1)}
		got := map[int]string{}
		err := s.GetMany(context.Background(), table, keys, func(i int, value []byte) error {
			got[i] += string(value)
			return nil
		})
		want := map[int]string{0: "b1", 2: "a2", 4: "a1", 5: "b1"}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: got %v, %v; expected %v", table.Name, got, err, want)
		}
	}
}

func testNewestMany(t *testing.T, s kv.Store) {
	for _, table := range bothKinds() {
		put(t, s, row{table, "a", 10, "a10"}, row{table, "a", 20, "a20"}, row{table, "b", 15, "b15"})
		keys := []kv.Key{key("b", 99), key("a", 9), key("a", 19), key("x", 99), key("a", 20), key("b", 14)}
		got := map[int]string{}
		err := s.NewestMany(context.Background(), table, keys, func(i int, sort uint64, value []byte) error {
			got[i] += fmt.Sprintf("%d:%s", sort, value)
			return nil
		})
		want := map[int]string{0: "15:b15", 2: "10:a10", 4: "20:a20"}
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: got %v, %v; expected %v", table.Name, got, err, want)
		}
	}
}

func testManyStops(t *testing.T, s kv.Store) {
	ctx := context.Background()
	put(t, s, row{list, "a", 1, "1"}, row{list, "a", 2, "2"})
	keys := []kv.Key{key("a", 1), key("a", 2)}
	stop := errors.New("stop")
	calls := 0
	if err := s.GetMany(ctx, list, keys, func(int, []byte) error { calls++; return stop }); err != stop || calls != 1 {
		t.Errorf("GetMany: %d calls, error %v; expected one call and its error", calls, err)
	}
	calls = 0
	if err := s.NewestMany(ctx, list, keys, func(int, uint64, []byte) error { calls++; return stop }); err != stop || calls != 1 {
		t.Errorf("NewestMany: %d calls, error %v; expected one call and its error", calls, err)
	}
	// An error of the caller's own that happens to say "not found" is no exception.
	if err := s.GetMany(ctx, list, keys, func(int, []byte) error { return kv.ErrNotFound }); !errors.Is(err, kv.ErrNotFound) {
		t.Errorf("GetMany: found's ErrNotFound came back as %v", err)
	}
	// A callback may read from the store.
	err := s.GetMany(ctx, list, keys, func(i int, value []byte) error {
		inner := get(s, list, "a", uint64(i+1))
		expect(t, "read within found", inner, fmt.Sprintf("%q", value))
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, none := range [][]kv.Key{nil, {}} {
		if err := s.GetMany(ctx, list, none, nil); err != nil {
			t.Errorf("GetMany of no keys: %v", err)
		}
	}
}
