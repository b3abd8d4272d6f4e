package network

import (
	"strings"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/beacon"
	"ashlar/family"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

const root = "0x2af778d703186526a1b6304b423f338f11556206f618643c3f7fa0d7b1ef5c9b"

// Entries of a light client that make no sense are refused, with what is expected.
func TestLightClientEntries(t *testing.T) {
	node := upstream.Nodes{{URL: "http://127.0.0.1:5052"}}
	for name, test := range map[string]struct {
		change func(*Entries)
		want   string // empty: there is no problem
	}{
		"whole":         {func(*Entries) {}, ""},
		"none":          {func(e *Entries) { e.LightClient = LightClient{} }, ""},
		"no nodes":      {func(e *Entries) { e.LightClient.Nodes = nil }, "without nodes"},
		"no checkpoint": {func(e *Entries) { e.LightClient.Checkpoint = "" }, "checkpoint: invalid root"},
		"short root":    {func(e *Entries) { e.LightClient.Checkpoint = root[:64] }, "checkpoint: invalid root"},
		"zero":          {func(e *Entries) { e.LightClient.Checkpoint = common.Hash{}.Hex() }, "checkpoint: invalid root"},
		"no check":      {func(e *Entries) { e.Checked, e.Upstream = "", nil }, "expected both"},
		"source":        {func(e *Entries) { e.Source = family.Sources{"http://127.0.0.1:8545"} }, "expected no source"},
		"engine":        {func(e *Entries) { e.Engine.Listen = "127.0.0.1:8551" }, "expected one of them"},
		"quorum":        {func(e *Entries) { e.Quorum = 2 }, "the light client says"},
		"budget":        {func(e *Entries) { e.LightClient.Nodes = upstream.Nodes{{URL: "http://127.0.0.1", Rate: 1}} }, "number 1 of 1: all nodes are asked"},
		"scheme":        {func(e *Entries) { e.LightClient.Nodes = upstream.Nodes{{URL: "ws://127.0.0.1"}} }, "unknown scheme"},
	} {
		e := Family{}.Entries().(*Entries)
		e.Genesis, e.Checked, e.Upstream, e.LightClient = "mainnet", checkState, upstream.Nodes{{URL: "http://127.0.0.1:8545"}}, LightClient{node, root}
		test.change(e)
		var texts []string
		for _, p := range e.Check("mainnet") {
			texts = append(texts, p.Err.Error())
		}
		if text := strings.Join(texts, "; "); (text == "") != (test.want == "") || !strings.Contains(text, test.want) {
			t.Errorf("%s: %q, want %q", name, text, test.want)
		}
	}
}

// A final block is kept for the checkpoint from which it was verified.
func TestLightClientKeeps(t *testing.T) {
	store := ingesttest.Store(t)
	keeper := &lightKeeper{store: store, configured: common.Hash{1}}
	load := func(k *lightKeeper, want beacon.Checkpoint) {
		t.Helper()
		if saved, err := k.Load(t.Context()); err != nil || saved != want {
			t.Errorf("loaded %+v, %v, expected %+v", saved, err, want)
		}
	}
	load(keeper, beacon.Checkpoint{})
	for slot := uint64(32); slot < 200; slot += 32 {
		block := beacon.Checkpoint{Slot: slot, Root: common.Hash{byte(slot)}}
		if err := keeper.Save(t.Context(), block); err != nil {
			t.Fatal(err)
		}
		load(keeper, block)
		reader := &lightKeeper{store: store, configured: common.Hash{1}, reading: true}
		if err := reader.Save(t.Context(), beacon.Checkpoint{Slot: 1}); err != nil {
			t.Fatal(err)
		}
		load(reader, block)
	}
	load(&lightKeeper{store: store, configured: common.Hash{2}}, beacon.Checkpoint{})
	batch := store.NewBatch()
	batch.SetPointer(pointerLight, []byte{1})
	if err := store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	if _, err := keeper.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "1 bytes") {
		t.Errorf("a damaged pointer: %v", err)
	}
}

// A network with the head that its light client has verified is not behind, whatever nodes say.
func TestLightClientIsNotBehindNodes(t *testing.T) {
	light := &beacon.Status{Head: beacon.Slot{Number: 7, Block: common.Hash{7}}}
	if behind := behindLight(light, common.Hash{7}, 1000); behind != 0 {
		t.Errorf("the verified head is %d blocks behind", behind)
	}
	if behind := behindLight(light, common.Hash{6}, 40); behind != 40 {
		t.Errorf("an older head is %d blocks behind, expected 40", behind)
	}
}
