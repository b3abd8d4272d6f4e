package snapshot_test

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/big"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/snapshot"
	"ashlar/kv"
	"ashlar/kv/kvtest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

const (
	wideAccounts = 600
	wideBlocks   = 3
)

// newWide makes an archive with many accounts of few slots each, and one with many.
func newWide(t *testing.T) kv.Store {
	g := ingesttest.Genesis(t)
	g.Alloc = maps.Clone(g.Alloc)
	number := func(i int) []byte { return crypto.Keccak256(binary.BigEndian.AppendUint32(nil, uint32(i))) }
	for i := range wideAccounts {
		account := types.Account{Balance: big.NewInt(int64(i + 1)), Storage: make(map[common.Hash]common.Hash)}
		slots := i % 6
		if i == wideAccounts/2 {
			slots = 1000
		}
		for slot := range slots {
			account.Storage[common.Hash(number(slot))] = common.Hash{31: byte(i%250 + 1)}
		}
		if slots > 0 {
			account.Nonce, account.Code = 1, number(i%50)
			account.Code[0] = 0
		}
		g.Alloc[common.BytesToAddress(number(i))] = account
	}
	_, blocks, _ := core.GenerateChainWithGenesis(g, beacon.New(ethash.NewFaker()), wideBlocks, func(i int, b *core.BlockGen) {
		b.SetParentBeaconRoot(common.Hash{byte(i + 1)})
	})
	store := ingesttest.Store(t)
	a, err := archive.Create(t.Context(), store, g)
	if err != nil {
		t.Fatal(err)
	}
	(&maker{t: t, genesis: g, blocks: blocks, whole: a}).follow(a, blocks)
	return store
}

// create makes a snapshot of the state of the last block in a store.
func create(ctx context.Context, store kv.Reader, folder string) error {
	a, err := archive.Open(ctx, store.(kv.Store))
	if err != nil {
		return err
	}
	c, err := snapshot.New(ctx, a, snapshot.Options{Folder: folder, ChunkBytes: 20_000})
	if err == nil {
		_, err = c.Run(ctx)
	}
	return err
}

// TestRoundTrips counts the waits of a snapshot that is made of a store each of whose reads takes a millisecond. It is
// byte for byte that of a store whose reads take no time.
func TestRoundTrips(t *testing.T) {
	store := newWide(t)
	near, far := filepath.Join(t.TempDir(), "near"), filepath.Join(t.TempDir(), "far")
	if err := create(t.Context(), store, near); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		distant := &kvtest.Distant{Store: store, Statement: time.Millisecond}
		began := time.Now()
		if err := create(t.Context(), distant, far); err != nil {
			t.Fatal(err)
		}
		waits, reads := time.Since(began).Milliseconds(), distant.Count.Load()
		t.Logf("%d round trips, %d statements", waits, reads)
		if waits > reads/25 {
			t.Errorf("%d round trips with %d statements, expected %d at most", waits, reads, reads/25)
		}
	})
	if want, got := contents(t, near), contents(t, far); len(want) < 8 || !maps.Equal(got, want) {
		t.Errorf("%d files, expected the same %d", len(got), len(want))
	}
}

// failing is a store that fails from a read of trie nodes on.
type failing struct {
	*kvtest.Distant
	left atomic.Int64
}

var errAway = errors.New("the store is away")

// Descend implements kv.Reader. Of the tables, only that of trie nodes is read so.
func (f *failing) Descend(ctx context.Context, t *kv.Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) error {
	if f.left.Add(-1) < 0 {
		return errAway
	}
	return f.Distant.Descend(ctx, t, partition, at, found)
}

// TestFailingReads: a snapshot fails if a read of its state fails, and one that is canceled leaves no read under way,
// for which the bubble would wait.
func TestFailingReads(t *testing.T) {
	store := newWide(t)
	for _, left := range []int64{0, 1, 2, 10, 1000, 3000} {
		folder := filepath.Join(t.TempDir(), "out")
		synctest.Test(t, func(t *testing.T) {
			f := &failing{Distant: &kvtest.Distant{Store: store, Statement: time.Millisecond}}
			f.left.Store(left)
			if err := create(t.Context(), f, folder); !errors.Is(err, errAway) {
				t.Errorf("after %d reads: %v, expected %v", left, err, errAway)
			}
		})
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(25+left/30)*time.Millisecond)
			defer cancel()
			distant := &kvtest.Distant{Store: store, Statement: time.Millisecond}
			if err := create(ctx, distant, folder); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %d reads: %v", distant.Count.Load(), err)
			}
			ended := distant.Count.Load()
			if time.Sleep(time.Minute); distant.Count.Load() != ended {
				t.Errorf("%d reads after the end", distant.Count.Load()-ended)
			}
		})
	}
}
