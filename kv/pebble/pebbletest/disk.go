// Package pebbletest gives stores a disk in memory that fails them in the ways in
// which disks do: an operation fails, or all do from some moment on, or the power
// is cut and what was not synced is lost in part.
//
// It is for tests of what stands on a store; they need not know with what the
// engine makes its files.
package pebbletest

import (
	"math/rand/v2"
	"sync/atomic"
	"syscall"

	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Disk is a disk in memory.
type Disk struct {
	memory *vfs.MemFS
	before atomic.Pointer[func(Operation) error]
	count  atomic.Int64
}

// Operation is what a store is about to do with a disk.
type Operation struct {
	Number  int64  // of the operation on this disk, from 1
	Changes bool   // it changes the disk; else it reads
	Syncs   bool   // it makes earlier changes durable
	Path    string // of the file
}

// NewDisk makes an empty disk.
func NewDisk() *Disk { return &Disk{memory: vfs.NewCrashableMem()} }

// Open opens the store in the directory o.Path of the disk, or makes it.
func (d *Disk) Open(o pebble.Options) (*pebble.Store, error) {
	o.FS = errorfs.Wrap(d.memory, errorfs.InjectorFunc(d.inject))
	return pebble.Open(o)
}

// Before has every operation from now on ask f first; where f returns an error,
// the operation fails with it. f is called from many goroutines at once.
func (d *Disk) Before(f func(Operation) error) { d.before.Store(&f) }

// FullWhile makes the disk full while full says so: what changes a file fails, except to sync it.
func (d *Disk) FullWhile(full func() bool) {
	d.Before(func(op Operation) error {
		if full() && op.Changes && !op.Syncs {
			return syscall.ENOSPC
		}
		return nil
	})
}

// Operations is how many there were so far.
func (d *Disk) Operations() int64 { return d.count.Load() }

func (d *Disk) inject(op errorfs.Op) error {
	number := d.count.Add(1)
	f := d.before.Load()
	if f == nil {
		return nil
	}
	syncs := op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
	return (*f)(Operation{Number: number, Changes: op.Kind.ReadOrWrite() == errorfs.OpIsWrite, Syncs: syncs, Path: op.Path})
}

// Killed is the disk as the next process finds it if this one is killed now:
// all that was written is there, and no file is locked.
func (d *Disk) Killed() *Disk { return d.PowerCut(100, rand.New(rand.NewPCG(0, 0))) }

// PowerCut is the disk as it is found if the power is cut now: of what was not
// synced, only about so many percent are there, by chance.
func (d *Disk) PowerCut(kept int, random *rand.Rand) *Disk {
	return &Disk{memory: d.memory.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: random})}
}
