package network

import (
	"slices"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/internal/vectors"
	"ashlar/kv"
)

// TestImportMemory: what an import may take reaches its store and its importer, for a new network and a stored
// one.
func TestImportMemory(t *testing.T) {
	store := ingesttest.Store(t)
	memory := family.ImportMemory{Cache: 5 << 20, Buffer: 1 << 20, State: 3 << 20}
	var opened []kv.Options
	place := family.Place{Name: "net", Memory: memory, Open: func(o kv.Options) (kv.Store, error) {
		opened = append(opened, kv.Options{CacheBytes: o.CacheBytes, BufferBytes: o.BufferBytes, BulkLoad: o.BulkLoad})
		return keptOpen{store}, nil
	}}
	for _, flags := range []map[string]string{{flagGenesis: vectors.Path(t, "execution-apis", "genesis.json")}, {}} {
		under, err := Family{}.Import(t.Context(), place, flags)
		if err != nil {
			t.Fatal(err)
		}
		if got := under.(*imported).importer.Memory(); got != memory.State {
			t.Errorf("%v: the importer keeps %d bytes, want %d", flags, got, memory.State)
		}
		if err := under.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want := kv.Options{CacheBytes: memory.Cache, BufferBytes: memory.Buffer, BulkLoad: true}
	same := func(a, b kv.Options) bool {
		return a.CacheBytes == b.CacheBytes && a.BufferBytes == b.BufferBytes && a.BulkLoad == b.BulkLoad
	}
	if !slices.EqualFunc(opened, []kv.Options{want, want}, same) {
		t.Errorf("the store was opened with %+v, want %+v twice", opened, want)
	}
}
