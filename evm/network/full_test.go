package network

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/internal/fakenode"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/kv/pebble/pebbletest"

	"github.com/ethereum/go-ethereum/core/types"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// TestFullDiskStopsFollowing fills the disk below a network that follows a node, with its
// pool: the network says that it is stopped, still answers, and goes on by itself when
// there is space again.
func TestFullDiskStopsFollowing(t *testing.T) {
	genesis := ingesttest.Genesis(t)
	chain := append([]*types.Block{genesis.ToBlock()}, ingesttest.Chain(t)[:20]...)
	node, err := fakenode.New(fakenode.Options{ChainID: genesis.Config.ChainID.Uint64(), Raw: true, Subscriptions: true, Pool: true}, chain[0])
	if err != nil {
		t.Fatal(err)
	}
	defer node.Close()
	node.Set(chain[:6], 0, 0)

	var full atomic.Bool
	disk := pebbletest.NewDisk()
	disk.FullWhile(full.Load)
	opened := func(o kv.Options) (kv.Store, error) { return disk.Open(pebble.Options{Options: o, Path: "store"}) }
	i, err := create(t.Context(), family.Place{Open: opened}, kv.Options{}, genesis, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := i.Close(); err != nil {
		t.Fatal(err)
	}
	store, err := opened(kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	n, err := Family{}.Open(t.Context(), store, &Entries{Source: family.Sources{node.SocketURL()}}, false)
	if err != nil {
		t.Fatal(err)
	}
	pace := func() *family.CatchUp { return &family.CatchUp{Rate: 18.5, Remaining: 7} }
	methods, err := n.Serve(t.Context(), family.Service{Name: "full", CatchUp: pace})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.Run(ctx) }()
	awaitStatus := func(what string, is func(family.Status) bool) (status family.Status) {
		t.Helper()
		await.Until(t, what, func() bool {
			var err error
			if status, err = n.Status(t.Context()); err != nil {
				t.Fatal(err)
			}
			return is(status)
		})
		return status
	}
	awaitStatus("the first head", func(s family.Status) bool { return s.Head == 5 && s.Source.Behind == 0 })
	for range 2 {
		head := n.(*network).tip.Forkchoice().Head.Ref().Number
		full.Store(true)
		node.Set(chain[:head+8], 0, 0)
		status := awaitStatus("the stop on a full disk", func(s family.Status) bool {
			return s.Stopped != nil && s.Source.Problem != "" && !s.Source.Upstreams[0].Used
		})
		if status.Head != head || status.Stopped.Since == 0 {
			t.Errorf("on a full disk: %+v %+v", status, status.Source)
		}
		syncing, err := methods.Find("eth_syncing").Handler(t.Context(), []byte("[]"), nil)
		want := fmt.Sprintf(`{"startingBlock":"%#x","currentBlock":"%#[1]x","highestBlock":"%#x","blocksPerSecond":"0x12","remainingSeconds":"0x7"}`, head, head+7)
		if err != nil || string(syncing) != want {
			t.Errorf("on a full disk eth_syncing answers %s, %v, expected %s", syncing, err, want)
		}
		full.Store(false)
		awaitStatus("the head with space again", func(s family.Status) bool { return s.Head == head+7 && s.Stopped == nil && s.Source.Problem == "" })
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
