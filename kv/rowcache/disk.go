package rowcache

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/kv"
)

// DiskOptions say where rows are kept on disk.
type DiskOptions struct {
	Dir   string // empty: nowhere
	Bytes int64  // that rows and keys take, about
	// Open opens or makes a store of the embedded engine.
	Open func(dir string, o kv.Options) (kv.Store, error)
	// Store names the store whose rows these are, as of its last rewind. Rows that were kept
	// for another one are removed.
	Store string
	// Retry is the time between two attempts to open the stores while the disk is full; 0: 10 seconds.
	Retry  time.Duration
	Logger *slog.Logger // nil: discard
}

// LeastDiskBytes is the least space for a cache on disk.
const LeastDiskBytes = 16 << 20

// disk keeps rows in the embedded engine. docs/format.md draws them.
//
// Rows are added to the younger of two stores. When that one has half of the space, the
// older one is removed, and a new one becomes the younger. A row that is found in the older
// one is added to the younger again, so rows that are in use stay.
//
// One goroutine writes. While it is busy, or the disk full, rows are not kept. If the disk is full at the start, the stores are
// opened once there is space.
type disk struct {
	o      DiskOptions
	failed atomic.Bool // a failure was logged

	queue  chan kept
	queued atomic.Int64  // bytes in the queue
	done   chan struct{} // closed when the goroutine has ended

	mu      sync.RWMutex // held exclusively while stores are exchanged
	younger kv.Store     // nil while the stores could not be opened
	older   kv.Store     // may be nil
	number  uint64       // of the younger one: the name of its directory
	before  uint64       // number of the older one
	bytes   int64        // of the younger one; used by the goroutine
	tried   time.Time    // when the stores could not be opened last; used by the goroutine
}

// kept is a span to be written.
type kept struct {
	table     *kv.Table
	partition []byte
	span
}

const (
	diskQueue       = 1024
	diskQueueBytes  = 16 << 20
	diskBatchBytes  = 1 << 20 // of one write
	diskCacheBytes  = 8 << 20
	diskBufferBytes = 4 << 20
	// Rows of a span that are read at once: a trie node and its differences, a page of a list.
	diskVersions = 8
	diskList     = 64

	pointerStore = "store"
)

func openDisk(ctx context.Context, o DiskOptions) (*disk, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Retry = cmp.Or(o.Retry, 10*time.Second)
	d := &disk{o: o, queue: make(chan kept, diskQueue), done: make(chan struct{})}
	if err := d.openLater(ctx); err != nil {
		return nil, err
	}
	go d.write(context.WithoutCancel(ctx))
	return d, nil
}

// open opens the stores that are there, or makes the first one.
func (d *disk) open(ctx context.Context) error {
	if d.o.Bytes < LeastDiskBytes {
		return fmt.Errorf("%d bytes (want %d or more)", d.o.Bytes, LeastDiskBytes)
	}
	if err := os.MkdirAll(d.o.Dir, 0o755); err != nil {
		return err
	}
	numbers, err := d.numbers()
	if err != nil {
		return err
	}
	for i, n := range numbers {
		var s kv.Store
		if i < 2 {
			if s, err = d.openNumber(ctx, n); err != nil {
				return err
			}
		}
		if s == nil { // it is of another store, damaged, or left over
			err = os.RemoveAll(d.path(n))
		} else {
			d.add(s, n)
		}
		if err != nil {
			return err
		}
	}
	if d.younger == nil {
		return d.begin(ctx)
	}
	return nil
}

// add adds a store that was opened, the younger one first.
func (d *disk) add(s kv.Store, number uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.younger == nil {
		d.younger, d.number, d.bytes = s, number, s.Stats().DiskBytes
	} else {
		d.older, d.before = s, number
	}
}

// numbers lists the stores that are there, the youngest first.
func (d *disk) numbers() (numbers []uint64, err error) {
	entries, err := os.ReadDir(d.o.Dir)
	for _, e := range entries {
		if n, err := strconv.ParseUint(e.Name(), 10, 64); err == nil && e.IsDir() && filepath.Base(d.path(n)) == e.Name() {
			numbers = append(numbers, n)
		}
	}
	slices.SortFunc(numbers, func(a, b uint64) int { return cmp.Compare(b, a) })
	return numbers, err
}

func (d *disk) options() kv.Options {
	return kv.Options{CacheBytes: diskCacheBytes, BufferBytes: diskBufferBytes, BulkLoad: true, Private: true, Logger: d.o.Logger}
}

func (d *disk) path(number uint64) string {
	return filepath.Join(d.o.Dir, fmt.Sprintf("%08d", number))
}

// diskForm is that of the rows that are kept. Those of another form are dropped: the first one says that there
// are no blocks below the first one of a network, which may have been added since.
const diskForm = "2"

// name names the store and the form of the rows.
func (d *disk) name() string { return d.o.Store + "/" + diskForm }

// openNumber opens a store, or returns nil if it has rows of another store, or is damaged.
func (d *disk) openNumber(ctx context.Context, number uint64) (kv.Store, error) {
	s, err := d.o.Open(d.path(number), d.options())
	if kv.IsDamage(err) {
		d.o.Logger.Warn("rows that were kept on disk are damaged and will be removed", "dir", d.path(number), "error", err)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	name, err := s.Pointer(ctx, pointerStore)
	if err == nil && string(name) == d.name() {
		return s, nil
	}
	if errors.Is(err, kv.ErrNotFound) {
		err = nil // a process was killed before it named the store
	}
	return nil, errors.Join(err, s.Close())
}

// begin makes a store, which becomes the younger one.
func (d *disk) begin(ctx context.Context) error {
	next := d.number + 1
	s, err := d.o.Open(d.path(next), d.options())
	if err != nil {
		return err
	}
	if err := s.CompareAndSet(ctx, pointerStore, nil, []byte(d.name())); err != nil {
		return errors.Join(err, s.Close())
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	removed, number := d.older, d.before
	d.older, d.before, d.younger, d.number, d.bytes = d.younger, d.number, s, next, 0
	if removed == nil {
		return nil
	}
	return errors.Join(removed.Close(), os.RemoveAll(d.path(number)))
}

func (d *disk) closeStores() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var failed []error
	for _, s := range []kv.Store{d.younger, d.older} {
		if s != nil {
			failed = append(failed, s.Close())
		}
	}
	d.younger, d.older = nil, nil
	return errors.Join(failed...)
}

// close writes what is queued and closes the stores. No other call may be under way.
func (d *disk) close() error {
	close(d.queue)
	<-d.done
	return d.closeStores()
}

// report logs the first failure. Rows that cannot be kept are read from the store.
func (d *disk) report(err error) {
	if err != nil && d.failed.CompareAndSwap(false, true) {
		d.o.Logger.Warn("the cache of rows on disk fails; rows are read from the store instead", "dir", d.o.Dir, "error", err)
	}
}

// keep queues a span to be written, if there is room.
func (d *disk) keep(t *kv.Table, partition []byte, p span) {
	k := kept{t, append([]byte{}, partition...), p}
	size := k.size()
	if d.queued.Add(size) > diskQueueBytes {
		d.queued.Add(-size)
		return
	}
	select {
	case d.queue <- k:
	default:
		d.queued.Add(-size)
	}
}

// size returns the memory that the span takes.
func (k *kept) size() int64 {
	e := entry{key: string(k.partition), spans: []span{k.span}}
	return e.measure()
}

// write writes spans until the queue is closed.
func (d *disk) write(ctx context.Context) {
	defer close(d.done)
	for k := range d.queue {
		if !d.ready(ctx) {
			d.queued.Add(-k.size())
			continue
		}
		b := d.younger.NewBatch()
		d.take(b, k)
		for len(d.queue) > 0 && b.Bytes() < diskBatchBytes {
			d.take(b, <-d.queue)
		}
		d.bytes += int64(b.Bytes())
		err := d.younger.Write(ctx, b)
		if err == nil && d.bytes > d.o.Bytes/2 {
			err = d.begin(ctx)
		}
		d.report(err)
	}
}

// take adds a span from the queue to a batch.
func (d *disk) take(b kv.Batch, k kept) {
	k.put(b)
	d.queued.Add(-k.size())
}

// The first byte of a value.
const (
	diskNothing = 0 // there is no row from the sort key to the one that follows
	diskRow     = 1 // there is this row, and no other up to the sort key that follows
	diskHead    = 1 + 8
)

// put puts the rows of a span. Unlike those of other stores they may replace others: when
// more is known of what follows them.
func (k *kept) put(b kv.Batch) {
	put := func(from uint64, head byte, to uint64, row []byte) {
		b.Put(k.table, k.partition, from, append(binary.BigEndian.AppendUint64([]byte{head}, to), row...))
	}
	until := func(i int) uint64 {
		if i < len(k.rows) {
			return k.rows[i].sort - 1
		}
		return k.to
	}
	if len(k.rows) == 0 || k.rows[0].sort > k.from {
		put(k.from, diskNothing, until(0), nil)
	}
	for i, r := range k.rows {
		put(r.sort, diskRow, until(i+1), r.value)
	}
}

// look returns a span that has a sort key.
func (d *disk) look(ctx context.Context, t *kv.Table, partition []byte, sort uint64) (p span, ok bool) {
	d.mu.RLock()
	var err error
	if d.younger != nil {
		p, ok, err = lookIn(ctx, d.younger, t, partition, sort)
	}
	again := false
	if !ok && err == nil && d.older != nil {
		p, ok, err = lookIn(ctx, d.older, t, partition, sort)
		again = ok
	}
	d.mu.RUnlock()
	if err != nil {
		if ctx.Err() == nil {
			d.report(err)
		}
		return p, false
	}
	if again {
		d.keep(t, partition, p)
	}
	return p, ok
}

func lookIn(ctx context.Context, s kv.Reader, t *kv.Table, partition []byte, sort uint64) (p span, ok bool, err error) {
	value, from, err := s.Newest(ctx, t, partition, sort, nil)
	if errors.Is(err, kv.ErrNotFound) {
		return p, false, nil
	}
	if err == nil {
		p, err = segment(from, value)
	}
	if err != nil || p.to < sort {
		return p, false, err
	}
	switch {
	case named(t):
	case t.Kind == kv.Versions && p.from > 0:
		err = s.Descend(ctx, t, partition, p.from-1, func(from uint64, value []byte) (enough bool, err error) {
			before, err := segment(from, value)
			if err != nil || before.to < p.from-1 {
				return true, err
			}
			p.from, p.rows = before.from, append(before.rows, p.rows...)
			return len(p.rows) >= diskVersions, nil
		})
	case t.Kind == kv.List && p.to < ^uint64(0):
		c := s.Scan(ctx, t, partition, p.to+1, ^uint64(0))
		for len(p.rows) < diskList && c.Next() {
			after, err := segment(c.Sort(), append([]byte{}, c.Value()...))
			if err != nil {
				return p, false, errors.Join(err, c.Close())
			}
			if after.from != p.to+1 {
				break
			}
			p.to, p.rows = after.to, append(p.rows, after.rows...)
		}
		err = c.Close()
	}
	return p, err == nil, err
}

// segment decodes a stored value.
func segment(from uint64, value []byte) (p span, err error) {
	if len(value) < diskHead {
		return p, fmt.Errorf("a row of %d bytes (want %d or more)", len(value), diskHead)
	}
	p.from, p.to = from, binary.BigEndian.Uint64(value[1:])
	if value[0] == diskRow {
		p.rows = []row{{from, append([]byte{}, value[diskHead:]...)}}
	}
	return p, nil
}
