// Package archive keeps answers of nodes that cannot change any more, and the ID of the
// chain, in the store of a forwarded network. docs/format.md draws the rows.
//
// Answers are in generations. New ones go to the newest generation; when all generations
// together are larger than the archive may be, the oldest is dropped as a whole. An answer
// that is read from the oldest generation is written again to the newest, so those that are
// in use stay.
package archive

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"ashlar/history/rows"
	"ashlar/kv"
)

const (
	format        = "ashlar-forwarded-1"
	pointerChain  = "chain"   // 8 bytes: the chain's ID
	pointerBounds = "answers" // for each generation, oldest first: 4 bytes number, 8 bytes size

	generations = 4       // of which the archive has this many when it is full
	steps       = 64      // in which the stored size of a generation grows
	maxAnswer   = 8 << 20 // larger answers are not kept
	keyBytes    = sha256.Size - 8
)

// answers has a row for each answer: partition the generation, sort key the first 8 bytes of
// the key's hash, value the rest of the hash and the answer.
var answers = &kv.Table{ID: 0x70, Name: "forwarded_answers", Kind: kv.List, Transient: true}

// Tables lists the tables of a forwarded network.
func Tables() []*kv.Table { return []*kv.Table{answers} }

// Accept refuses a store that this version cannot read. An empty store is accepted.
func Accept(ctx context.Context, r kv.Reader) error {
	if err := rows.CheckFormat(ctx, r, format); err != nil && !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	return nil
}

// Archive is the archive of one network. It is safe for concurrent use.
type Archive struct {
	store   kv.Store
	size    int64 // of all generations
	reading bool  // another process writes

	mu          sync.Mutex
	generations []generation // guarded by mu: oldest first; at least one
	saved       int64        // guarded by mu: size of the newest generation in the pointer
}

type generation struct {
	number uint32
	bytes  int64
}

// Create prepares an empty store, or accepts one that was prepared before.
func Create(ctx context.Context, store kv.Store) error {
	if err := Accept(ctx, store); err != nil {
		return err
	}
	if _, err := rows.Format(ctx, store); !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	batch := store.NewBatch()
	rows.SetFormat(batch, format)
	if err := store.Write(ctx, batch); err != nil {
		return err
	}
	return store.Sync(ctx)
}

// Open opens the archive in a store that was prepared by Create. Its answers take at most
// size bytes. If reading is set, nothing is written.
func Open(ctx context.Context, store kv.Store, size int64, reading bool) (*Archive, error) {
	if err := rows.CheckFormat(ctx, store, format); err != nil {
		return nil, err
	}
	a := &Archive{store: store, size: size, reading: reading, generations: []generation{{}}}
	value, err := store.Pointer(ctx, pointerBounds)
	if errors.Is(err, kv.ErrNotFound) {
		return a, nil
	}
	if err != nil {
		return nil, err
	}
	if len(value) == 0 || len(value)%12 != 0 {
		return nil, fmt.Errorf("archive: pointer %q has %d bytes (want 12 for each generation)", pointerBounds, len(value))
	}
	a.generations = nil
	for ; len(value) > 0; value = value[12:] {
		a.generations = append(a.generations, generation{binary.BigEndian.Uint32(value), int64(binary.BigEndian.Uint64(value[4:]))})
	}
	a.saved = a.generations[len(a.generations)-1].bytes
	return a, nil
}

// ChainID returns the chain's ID, 0 if it is not known.
func (a *Archive) ChainID(ctx context.Context) (uint64, error) {
	value, err := a.store.Pointer(ctx, pointerChain)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case len(value) != 8:
		return 0, fmt.Errorf("archive: pointer %q has %d bytes (want 8)", pointerChain, len(value))
	}
	return binary.BigEndian.Uint64(value), nil
}

// SetChainID stores the chain's ID.
func (a *Archive) SetChainID(ctx context.Context, id uint64) error {
	if a.reading {
		return nil
	}
	batch := a.store.NewBatch()
	batch.SetPointer(pointerChain, binary.BigEndian.AppendUint64(nil, id))
	if err := a.store.Write(ctx, batch); err != nil {
		return err
	}
	return a.store.Sync(ctx)
}

// key is what a row is found by.
type key [sha256.Size]byte

func (k *key) sort() uint64 { return binary.BigEndian.Uint64(k[:]) }

func partition(generation uint32) []byte { return binary.BigEndian.AppendUint32(nil, generation) }

// Get returns the answer to a question, and false if there is none.
func (a *Archive) Get(ctx context.Context, question string) (answer []byte, ok bool, err error) {
	k := key(sha256.Sum256([]byte(question)))
	a.mu.Lock()
	keys := make([]kv.Key, len(a.generations))
	for i, g := range a.generations {
		keys[i] = kv.Key{Partition: partition(g.number), Sort: k.sort()}
	}
	a.mu.Unlock()
	oldest := true
	err = a.store.GetMany(ctx, answers, keys, func(i int, value []byte) error {
		if len(value) >= keyBytes && string(value[:keyBytes]) == string(k[8:]) {
			answer, ok = append(answer[:0], value[keyBytes:]...), true
			oldest = oldest && i == 0
		}
		return nil
	})
	if err != nil {
		return nil, false, err
	}
	if ok && oldest && len(keys) > 1 {
		_ = a.put(ctx, &k, answer) // if the store refuses writes, it stays where it is
	}
	return answer, ok, nil
}

// Put keeps the answer to a question, which can never be another one.
func (a *Archive) Put(ctx context.Context, question string, answer []byte) error {
	k := key(sha256.Sum256([]byte(question)))
	return a.put(ctx, &k, answer)
}

func (a *Archive) put(ctx context.Context, k *key, answer []byte) error {
	if a.reading || len(answer) > maxAnswer {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	newest := &a.generations[len(a.generations)-1]
	at := partition(newest.number)
	// A row must not change. Two questions whose hashes begin alike share a place: the first
	// one keeps it.
	if _, err := a.store.Get(ctx, answers, at, k.sort(), nil); err == nil {
		return nil
	} else if !errors.Is(err, kv.ErrNotFound) {
		return err
	}
	held := newest.bytes
	newest.bytes += int64(keyBytes + 20 + len(answer)) // also if the write fails: it may have been applied
	before, saved := slices.Clone(a.generations), a.saved
	batch := a.store.NewBatch()
	batch.Put(answers, at, k.sort(), append(k[8:], answer...))
	share := a.size / generations
	var dropped []uint32
	switch {
	case newest.bytes > share:
		a.saved = 0
		a.generations = append(a.generations, generation{number: newest.number + 1})
		for len(a.generations) > generations+1 {
			dropped = append(dropped, a.generations[0].number)
			a.generations = a.generations[1:]
		}
		batch.SetPointer(pointerBounds, a.bounds())
	case newest.bytes > a.saved:
		a.saved = newest.bytes + share/steps
		batch.SetPointer(pointerBounds, a.bounds())
	}
	if err := a.write(ctx, batch, dropped); err != nil {
		a.generations, a.saved = before, saved
		if errors.Is(err, kv.ErrFull) { // refused, or not completed before space is free: that is one answer at most
			a.generations[len(before)-1].bytes = held
		}
		return err
	}
	return nil
}

// write writes a batch whose pointer names some generations no more. Their rows go first: if the
// process ends in between, the pointer still names them, and they are dropped again later.
func (a *Archive) write(ctx context.Context, batch kv.Batch, dropped []uint32) error {
	for _, number := range dropped {
		if err := a.store.Drop(ctx, answers, partition(number)); err != nil {
			return err
		}
	}
	return a.store.Write(ctx, batch)
}

// bounds is the value of the pointer. It counts what the newest generation is about to get, so
// that a size that is read at the next start is never too small. mu is held.
func (a *Archive) bounds() (value []byte) {
	for i, g := range a.generations {
		size := g.bytes
		if i == len(a.generations)-1 {
			size = a.saved
		}
		value = binary.BigEndian.AppendUint32(value, g.number)
		value = binary.BigEndian.AppendUint64(value, uint64(size))
	}
	return value
}
