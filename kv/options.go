package kv

import "log/slog"

// Options are the options that every engine takes when it opens a store. An engine's own
// Open takes them together with the place of the store and with options of that engine.
type Options struct {
	// CacheBytes bounds the cache of rows; 0 means the engine's default.
	CacheBytes int64
	// BufferBytes bounds one buffer of rows that are not stored yet; 0 means the
	// engine's default. An engine may have several such buffers.
	BufferBytes int64
	// BulkLoad says that much is going to be written and little read. Writes may
	// become durable later than usual, but keep the order that [Store.Write] promises:
	// a crash may go back to the last Sync.
	BulkLoad bool
	// Tables are those that the store may have, and maybe others. An engine stores those that
	// are missing here as if they were not [Table.Apart].
	Tables []*Table
	// Existing makes Open return ErrNotFound, and change nothing, if there is no store.
	Existing bool
	// ReadOnly leaves the store as it is; every write returns an error. It includes
	// Existing.
	ReadOnly bool
	// Private keeps other users of the machine from reading the store. An engine whose
	// stores are not files of this machine ignores it.
	Private bool
	// Accept, if set, is shown an existing store before anything in it changes. If it
	// returns an error, Open changes nothing and returns that error. Accept is not
	// called for a new store. It must not keep the reader.
	Accept func(Reader) error
	// Logger receives what the engine logs; nil discards it.
	Logger *slog.Logger
}
