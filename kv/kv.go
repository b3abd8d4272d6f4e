// Package kv is the contract of the ordered store that everything else uses.
//
// A store holds rows. A row belongs to a [Table] and is named by a partition
// key (any bytes, at most [MaxPartition]) and a sort key (a uint64, nearly always
// a block number). Within a partition rows are ordered by their sort key; no read
// crosses partitions, except [Store.Walk] for maintenance. Embedded and distributed
// stores can both do that well.
//
// A row, once written, never changes its meaning. Writing the same row again with the same value
// is allowed and changes nothing. If the engine applies a batch at once, a row may be replaced
// by one with the same meaning that depends on fewer rows below it. So a row that was read can
// be cached until rows are removed, which the store's epoch says: see [EpochPointer]. Rows of
// [Table.Transient] tables must not be cached; their partitions can be removed at any time, by [Store.Drop].
//
// A store also holds a few named pointers, which are the only things that
// change. A pointer written in the same [Batch] as rows becomes visible, and
// durable, together with them or after them, never before.
//
// Every engine runs the suite in kv/kvtest and is opened in app/store. Errors that any
// engine may return are declared here; an engine wraps them with its own details.
package kv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"time"
)

// MaxPartition is the greatest length of a partition key, in bytes.
const MaxPartition = 256

// Kind says how the rows of a table are read, so that an engine can lay them out.
type Kind uint8

const (
	// Versions are the values that one thing has had, newest wanted first:
	// read by Newest. The sort key is the block that wrote the value.
	Versions Kind = iota + 1
	// List rows are read in ascending order by Scan, or one by one by Get.
	List
)

// Table names a set of rows with the same kind of keys and values. Tables are
// declared once, as package variables of the package that owns the rows.
type Table struct {
	ID   byte   // first byte of every stored key on an embedded engine; unique, never reused
	Name string // lower_case, unique; the table's name in a distributed engine and in messages
	Kind Kind
	// Transient lets partitions be dropped.
	Transient bool
	// Expected says that partitions that are read mostly exist, so that an engine need
	// not check that first. A missing one is still not found.
	Expected bool
	// IndexBits of a sort key, its lowest, are an index within the block whose
	// number is in the bits above.
	IndexBits uint8
	// Single says that rows of a list are read by Get only, so a cache keeps each by itself
	// even though some share a block.
	Single bool
	// Apart says that the table has about half of all that is stored, most of which is hashes
	// and does not shrink. An engine may keep it apart from the others, so that both are
	// compacted side by side, and compress it lightly, because it is unpacked and merged faster
	// then.
	Apart bool
}

// BlockOf is the block that a row with this sort key is of.
func (t *Table) BlockOf(sort uint64) uint64 { return sort >> t.IndexBits }

var (
	// ErrNotFound is returned by Get, Newest and Pointer if there is no such row, and
	// when a store is opened that must exist and does not.
	ErrNotFound = errors.New("kv: not found")
	// ErrConflict is returned by CompareAndSet when the pointer has another value than expected.
	ErrConflict = errors.New("kv: pointer has changed")
	// ErrClosed is returned by every method after Close.
	ErrClosed = errors.New("kv: store is closed")

	// ErrInUse is returned when a store is opened that another process has open, by
	// an engine that serves one process at a time.
	ErrInUse = errors.New("the store is in use")
	// ErrForeign is returned when a store is opened at a place that holds something else.
	ErrForeign = errors.New("not an ashlar store")
	// ErrFull is returned when a store is opened, and by every write, while there is
	// too little space left. A write that returns it may be completed later, before any
	// other; so the writer should write the same again, not something else.
	ErrFull = errors.New("the disk is full")
	// ErrCheckpoint is returned by Checkpoint while an earlier copy for the same purpose has not
	// been released, by whichever process, and by CopiedElsewhere.
	ErrCheckpoint = errors.New("the store is being copied already")
	// ErrUnavailable is returned by any call for which too few nodes of a distributed store
	// answer, and by reads for which too many files are open. It succeeds again when more nodes
	// answer, or fewer files are open.
	// A write that returns it may have been applied all the same, as a whole or in part, or be
	// applied until another one has set a pointer.
	ErrUnavailable = errors.New("the store cannot be reached")
	// ErrFailed is returned by every write after one has failed for good. Reads go on.
	// The store must be opened again, by another process, to be written.
	ErrFailed = errors.New("the store takes no writes until its process is started again")
)

// Key names one row, or, for NewestMany, the place at or below which to look.
type Key struct {
	Partition []byte
	Sort      uint64
}

// Reader reads rows. All methods may be called from many goroutines at once and
// never wait for a writer. A read sees every Write that returned before the read
// began.
//
// Methods that take dst append the value to it and return the extended slice,
// which the caller owns; on error they return dst unchanged.
type Reader interface {
	// Get appends the value of one row to dst, or returns ErrNotFound.
	Get(ctx context.Context, t *Table, partition []byte, sort uint64, dst []byte) ([]byte, error)

	// Newest appends the value of the row with the greatest sort key at or
	// below at to dst and returns that sort key; ErrNotFound when there is none.
	// It is meant for Versions tables but is right for both kinds.
	Newest(ctx context.Context, t *Table, partition []byte, at uint64, dst []byte) (value []byte, sort uint64, err error)

	// Descend calls found with the rows of a partition of a Versions table, from the
	// one that Newest finds at at downwards, until found returns enough or
	// there are no more rows. The value is valid only during the call. It stops at the
	// first error that found returns and returns it. In a List table it fails.
	Descend(ctx context.Context, t *Table, partition []byte, at uint64, found func(sort uint64, value []byte) (enough bool, err error)) error

	// GetMany calls found for each of keys that has a row, in any order, with
	// the key's index. The value is valid only during the call. It stops at
	// the first error that found returns and returns it.
	GetMany(ctx context.Context, t *Table, keys []Key, found func(i int, value []byte) error) error

	// NewestMany is GetMany with Newest's meaning of a key: found gets the
	// sort key of the row as well.
	NewestMany(ctx context.Context, t *Table, keys []Key, found func(i int, sort uint64, value []byte) error) error

	// Scan returns a cursor over the rows of a partition with from <= sort <= to,
	// in ascending order, as they are now: later writes may or may not be seen.
	// It is meant for List tables but is right for both kinds. The cursor
	// must be closed.
	Scan(ctx context.Context, t *Table, partition []byte, from, to uint64) Cursor

	// Pointer returns the value of a named pointer, or ErrNotFound.
	Pointer(ctx context.Context, name string) ([]byte, error)
}

// Cursor steps through the rows of one partition. It belongs to one goroutine.
//
//	for ok := c.Next(); ok; ok = c.Next() { use(c.Sort(), c.Value()) }
//	if err := c.Close(); err != nil { ... }
//
// After a failure a cursor is at no row, as after the last row. Only Close's error tells
// the two apart, so check it before concluding that there is no row. A caller that stops
// at a row has missed none before it.
type Cursor interface {
	// Next moves to the next row and says whether there is one.
	Next() bool
	// Seek moves to the first row at or after sort and says whether there is
	// one. It does not go back: at a row at or after sort it stays, and after the
	// last row there is none, whatever sort is.
	Seek(sort uint64) bool
	// Sort is the current row's sort key.
	Sort() uint64
	// Value is the current row's value, valid until the cursor moves or is closed.
	Value() []byte
	// Close releases the cursor and returns the first error it met. It may be
	// called again.
	Close() error
}

// EpochPointer names the pointer that makes caches drop what they hold. Its value is a
// number in 8 bytes, big-endian; 0 if it does not exist. While it is odd, rows are being
// removed by [Batch.Delete] and [Batch.DeleteRange]: nothing may be served from the store.
//
//	epoch      4    5 (odd)                 6
//	writer          removes rows            done, may write other rows in their place
//	reader     ok   refuses to begin        drops every cache, goes on
//
// Each value is durable before the next step begins. A process that lets others write, as a
// distributed engine allows, compares the epoch whenever it reads pointers.
//
// Rows that no reader may ask for any more, such as old versions behind a window that has
// moved on, can be removed without a new epoch.
const EpochPointer = "epoch"

// Epoch returns the value of [EpochPointer], and whether rows are being removed.
func Epoch(ctx context.Context, r Reader) (epoch uint64, removing bool, err error) {
	value, err := r.Pointer(ctx, EpochPointer)
	switch {
	case errors.Is(err, ErrNotFound):
		return 0, false, nil
	case err != nil:
		return 0, false, err
	case len(value) != 8:
		return 0, false, fmt.Errorf("kv: pointer %q has %d bytes (want 8)", EpochPointer, len(value))
	}
	epoch = binary.BigEndian.Uint64(value)
	return epoch, epoch%2 == 1, nil
}

// Putter takes rows. It copies what it is given.
type Putter interface {
	Put(t *Table, partition []byte, sort uint64, value []byte)
}

// Batch collects rows, removals and pointers for one Write. It belongs to one goroutine
// and copies what it is given.
type Batch interface {
	Putter
	// Delete removes a row, whether it exists or not. A later batch may put the row again,
	// also with another value. The same batch must not: the order within a batch is
	// undefined.
	Delete(t *Table, partition []byte, sort uint64)
	// DeleteRange removes the rows of a partition with from <= sort <= to. It is meant for
	// many rows: a few are cheaper to remove, and to read past afterwards, by Delete.
	DeleteRange(t *Table, partition []byte, from, to uint64)
	SetPointer(name string, value []byte)
	// Rows is the number of rows, removals and pointers in the batch, Bytes their
	// approximate size.
	Rows() int
	Bytes() int
	// Reset empties the batch for use again.
	Reset()
}

// Store is an engine. Its methods may be called from many goroutines at once.
type Store interface {
	Reader

	NewBatch() Batch

	// Write makes a batch visible. An engine that can applies it all at once or
	// not at all, across crashes too; one that cannot applies rows and removals first and
	// pointers last. What Write has made visible survives a crash once a later
	// Sync has returned, and even before that a crash leaves the store as it was
	// after some earlier Write, never out of order; where batches are not applied all
	// at once, rows of the next Write may be there too, but no pointer of it.
	// The batch is unchanged and may be Reset and used again afterwards.
	Write(ctx context.Context, b Batch) error

	// Sync returns when everything that was written before the call is durable.
	Sync(ctx context.Context) error

	// CompareAndSet durably sets a pointer to value if it now has the value
	// old (nil: if it does not exist), else returns ErrConflict.
	CompareAndSet(ctx context.Context, name string, old, value []byte) error

	// Drop removes all rows of a partition of a Transient table. A read at the same
	// time may or may not see them. Unlike a Write, Drop may be undone by a crash until
	// a later Sync has returned.
	Drop(ctx context.Context, t *Table, partition []byte) error

	// Walk yields every row of a table with sort >= from in the engine's order, as of when
	// the iteration begins: all rows of a partition together, in Versions tables descending, in
	// List tables ascending. Partition and value are valid only for the iteration. Rows may be put and
	// removed meanwhile. For maintenance: it reads the whole table, or at least enough to
	// find these rows. A failure is yielded last, as the error.
	Walk(ctx context.Context, t *Table, from uint64) iter.Seq2[Row, error]

	// WalkAfter is Walk from the partition that follows another in the engine's order. The
	// table must have rows of that partition; nil stands for the beginning. So a walk that
	// was interrupted can go on after the last partition that was complete.
	WalkAfter(ctx context.Context, t *Table, after []byte, from uint64) iter.Seq2[Row, error]

	// Pointers returns all pointers by name. For maintenance.
	Pointers(ctx context.Context) (map[string][]byte, error)

	// Compact rewrites tables, all of the store if none is named, into their smallest form. It
	// may take minutes; reads and writes go on meanwhile.
	Compact(ctx context.Context, tables ...*Table) error

	// Stats returns what the store uses now.
	Stats() Stats

	// Close does not wait: no other call may be under way.
	// Everything written is durable when it returns without an error.
	Close() error
}

// Checkpointer is implemented by stores whose rows are in files of this machine.
type Checkpointer interface {
	// Checkpoint makes a copy of the store as of one Write, the last that returned before
	// the call or a later one, and returns the directory that holds it. Reads and writes go
	// on meanwhile. An engine opens that directory, or a copy of its files, as a store. Its
	// files are shared with the store, so they must not be changed.
	//
	// The copy stays until release, also when the store has been closed, and another process opens
	// it, writes to it and compacts it. release removes the directory. A copy that was left by a
	// process that was killed is removed when the store is opened to be written. There is one copy
	// for each purpose (lower-case letters) at a time: until release, Checkpoint for the same
	// purpose returns ErrCheckpoint.
	Checkpoint(ctx context.Context, purpose string) (dir string, release func() error, err error)

	// CopiedElsewhere returns an ErrCheckpoint that names the process if a copy belongs to another one, which made it
	// before the store was opened. The store cannot be removed until that copy is released. Another error means that
	// this is not known.
	CopiedElsewhere() error
}

// Piecewise is implemented by stores that do not apply a batch at once: a crash during a
// Write can leave some of its rows, without its pointers.
type Piecewise interface {
	Piecewise()
}

// Replicated is implemented by stores that keep each row at several nodes. A Write that was cut
// off may have reached some of them only. Such a row is seen or not, depending on which nodes
// are asked.
type Replicated interface {
	// WalkReplicas is Walk that yields every row that any node has. All nodes must answer.
	WalkReplicas(ctx context.Context, t *Table, from uint64) iter.Seq2[Row, error]
}

// WalkReplicas is [Replicated.WalkReplicas] of a store that keeps each row at several nodes, and Walk of another one.
func WalkReplicas(ctx context.Context, s Store, t *Table, from uint64) iter.Seq2[Row, error] {
	if r, ok := s.(Replicated); ok {
		return r.WalkReplicas(ctx, t, from)
	}
	return s.Walk(ctx, t, from)
}

// Leased is implemented by stores of which one process at a time may write, of several that
// can.
type Leased interface {
	// Lost returns a channel that is closed when another process has become the writer.
	// Every write then returns ErrFailed.
	Lost() <-chan struct{}
}

// Preparer is implemented by stores that take long to create a table.
type Preparer interface {
	// Prepare creates tables before they have rows.
	Prepare(ctx context.Context, tables []*Table) error
}

// Board is implemented by stores in which several processes post values for each other. Posts
// are not rows: they are not copied, and no epoch concerns them. A post replaces the one before
// with the same name, and may be gone after the time given by keep.
type Board interface {
	Post(ctx context.Context, name string, value []byte, keep time.Duration) error
	Posts(ctx context.Context) (map[string][]byte, error)
}

// Row is one stored row.
type Row struct {
	Partition []byte
	Sort      uint64
	Value     []byte
	// Walked is the estimated share of the table that a walk has behind it, from 0 to 1.
	Walked float64
}

// Stats is what a store uses.
type Stats struct {
	DiskBytes   int64
	MemoryBytes int64  // caches and buffers
	FreeBytes   *int64 // on the disk; nil if not known
	// CacheHits and CacheMisses are the reads of the cache since the store was opened.
	CacheHits, CacheMisses int64
	// Reads are the statements that have read rows and pointers of a distributed store.
	Reads int64
	// RoundTrips counts how often a caller waited for such statements, with those that were
	// made side by side as one.
	RoundTrips int64
	// Backlog is how many bytes the engine has to rewrite before the store is in order; it
	// grows while writes are faster than that.
	Backlog int64
	// WrittenBytes are the bytes that the engine has written to files since the store was
	// opened, of rows that were new and of rows that it moved.
	WrittenBytes int64
	Refused      error // why writes are refused now; nil if they are accepted
	// KeepsRows says whether rows that are read from a distributed store are kept on a local disk, too, as configured; nil if they
	// need not be.
	KeepsRows *bool
}
