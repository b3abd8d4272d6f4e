package crashes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/kv/pebble/pebbletest"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	chainBlocks = 24
	partBlocks  = 4 // imported and acknowledged at a time
	diskSeed    = 3
)

// chain is the chain to import in this process.
type chain struct {
	genesis *core.Genesis
	parts   [][]*types.Block
}

func demoChain(t *testing.T) *chain {
	t.Helper()
	blocks := ingesttest.Chain(t)[:chainBlocks]
	return &chain{ingesttest.Genesis(t), slices.Collect(slices.Chunk(blocks, partBlocks))}
}

// nothing stands for the acknowledged head before the genesis.
const nothing = -1

// importTo imports the chain onto a disk and closes it, as the command does. It raises acknowledged
// to the last block reported as durable. At the beginning, the store must have at least the blocks
// acknowledged earlier.
func (c *chain) importTo(ctx context.Context, disk *pebbletest.Disk, acknowledged *atomic.Int64) (err error) {
	store, err := disk.Open(pebble.Options{Path: "network", Options: kv.Options{BulkLoad: true, BufferBytes: 256 << 10, CacheBytes: 1 << 20}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	a, err := archive.Create(ctx, store, c.genesis)
	if err != nil {
		return err
	}
	if err := checkKept(a, acknowledged.Load()); err != nil {
		return err
	}
	executor, err := execute.New(c.genesis.Config)
	if err != nil {
		return err
	}
	importer, err := ingest.New(ctx, a, executor, c.genesis)
	if err != nil {
		return err
	}
	acknowledged.Store(max(acknowledged.Load(), 0))
	for _, part := range c.parts {
		if err := importer.Import(ctx, ingesttest.SourceOf(part)); err != nil {
			return err
		}
		acknowledged.Store(max(acknowledged.Load(), int64(importer.Progress().Kept)))
	}
	return store.Compact(ctx)
}

// errLost means that an acknowledged block is missing.
var errLost = errors.New("acknowledged blocks are lost")

func checkKept(a *archive.Archive, acknowledged int64) error {
	head, ok := a.Settled()
	if kept := int64(head.Number); acknowledged > nothing && (!ok || kept < acknowledged) {
		return fmt.Errorf("%w: the head is %s (%t), block %d was acknowledged", errLost, head, ok, acknowledged)
	}
	return nil
}

// stored reads the contents of a disk after an import.
func stored(ctx context.Context, disk *pebbletest.Disk) (c contents, err error) {
	store, err := disk.Open(pebble.Options{Path: "network"})
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	return contentsOf(ctx, store)
}

// undisturbed imports the chain without interruption. It returns the contents of the store and the
// number of disk operations.
func undisturbed(t *testing.T, c *chain) (contents, int64) {
	t.Helper()
	disk := pebbletest.NewDisk()
	var acknowledged atomic.Int64
	acknowledged.Store(nothing)
	if err := c.importTo(t.Context(), disk, &acknowledged); err != nil {
		t.Fatal(err)
	}
	operations := disk.Operations()
	want, err := stored(t.Context(), disk)
	if err != nil {
		t.Fatal(err)
	}
	if want.rows() == 0 || acknowledged.Load() != chainBlocks {
		t.Fatalf("%d rows, block %d acknowledged", want.rows(), acknowledged.Load())
	}
	return want, operations
}

// resume opens the store after a crash, completes the import and compares the contents.
func resume(ctx context.Context, c *chain, disk *pebbletest.Disk, acknowledged int64, want contents) error {
	var head atomic.Int64
	head.Store(acknowledged)
	if err := c.importTo(ctx, disk, &head); err != nil {
		return err
	}
	got, err := stored(ctx, disk)
	if err != nil {
		return err
	}
	return want.differ(got)
}

// step returns the distance between tested operations: 1 if all are to be tested, else such that
// about tried are.
func step(operations, tried int64) int64 {
	if *wholeFlag {
		return 1
	}
	return max(1, operations/tried)
}

// TestPowerCut cuts the power at every operation of an import. None, some or all of the unsynced data
// is lost.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	c := demoChain(t)
	want, operations := undisturbed(t, c)
	every := step(operations, 30)
	type crash struct {
		operation    pebbletest.Operation
		disk         *pebbletest.Disk
		acknowledged int64
	}
	var mu sync.Mutex
	var found []crash
	var acknowledged atomic.Int64
	acknowledged.Store(nothing)
	random := rand.New(rand.NewPCG(diskSeed, 0)) // guarded by mu
	disk := pebbletest.NewDisk()
	disk.Before(func(op pebbletest.Operation) error {
		if op.Changes && op.Number%every == 0 {
			mu.Lock()
			defer mu.Unlock()
			// Read this first: more may be acknowledged and on the disk later.
			known := acknowledged.Load()
			found = append(found, crash{op, disk.PowerCut(random.IntN(5)*25, random), known})
		}
		return nil
	})
	if err := c.importTo(t.Context(), disk, &acknowledged); err != nil {
		t.Fatal(err)
	}
	for _, crash := range found {
		if err := resume(t.Context(), c, crash.disk, crash.acknowledged, want); err != nil {
			t.Errorf("power cut at operation %d, on %s: %v", crash.operation.Number, crash.operation.Path, err)
		}
	}
	t.Logf("%d power cuts in an import of %d operations; %d rows compared after each", len(found), operations, want.rows())
}

// TestFailingDisk fails disk operations: one, or all from one on. Then the process is killed, or the
// power is cut.
func TestFailingDisk(t *testing.T) {
	t.Parallel()
	c := demoChain(t)
	want, operations := undisturbed(t, c)
	for _, test := range []struct {
		name  string
		fails func(op pebbletest.Operation, k int64) bool
		cause error
	}{
		{"one operation", func(op pebbletest.Operation, k int64) bool { return op.Number == k }, syscall.EIO},
		{"all from one on", func(op pebbletest.Operation, k int64) bool { return op.Number >= k }, syscall.EIO},
		{"all changes from one on", func(op pebbletest.Operation, k int64) bool { return op.Changes && op.Number >= k }, syscall.ENOSPC},
	} {
		t.Run(test.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(diskSeed, 1))
			tried, ended := 0, 0
			for k := int64(1); k <= operations; k += step(operations, 12) {
				fail := func(op pebbletest.Operation) error {
					if test.fails(op, k) {
						return test.cause
					}
					return nil
				}
				failed, err := failAndResume(t.Context(), c, fail, random, want)
				if err != nil {
					t.Errorf("operation %d: %v", k, err)
				}
				if tried++; failed {
					ended++
				}
			}
			t.Logf("%d of %d imports of %d operations failed; %d rows compared after each", ended, tried, operations, want.rows())
		})
	}
}

// failAndResume imports onto a failing disk, and then resumes with what is left on it. failed reports
// whether the first import ended with an error.
func failAndResume(ctx context.Context, c *chain, fail func(pebbletest.Operation) error, random *rand.Rand, want contents) (failed bool, err error) {
	disk := pebbletest.NewDisk()
	disk.Before(fail)
	var acknowledged atomic.Int64
	acknowledged.Store(nothing)
	failure := c.importTo(ctx, disk, &acknowledged)
	left := disk.Killed()
	if random.IntN(2) == 0 {
		left = disk.PowerCut(random.IntN(5)*25, random)
	}
	return failure != nil, resume(ctx, c, left, acknowledged.Load(), want)
}
