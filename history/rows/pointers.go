package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// The pointers of every network.
const (
	pointerFormat  = "format"  // the family, and the version of docs/format.md that the rows follow
	pointerSettled = "settled" // number and hash of the last settled block
)

// Pointers returns the names of all pointers, for tools that go through a whole store.
func Pointers() []string { return []string{pointerFormat, pointerSettled} }

// Format returns the format of the store's contents, or kv.ErrNotFound if it is empty.
func Format(ctx context.Context, store kv.Reader) (string, error) {
	format, err := store.Pointer(ctx, pointerFormat)
	if err != nil {
		return "", fmt.Errorf("archive: %w", err)
	}
	return string(format), nil
}

// CheckFormat returns ErrFormat if the format of the store's contents is not wanted, and
// kv.ErrNotFound if the store is empty.
func CheckFormat(ctx context.Context, store kv.Reader, wanted string) error {
	format, err := Format(ctx, store)
	if err == nil && format != wanted {
		err = fmt.Errorf("%w: the store has %q, this version reads %q", ErrFormat, format, wanted)
	}
	return err
}

// SetFormat sets the format of the store's contents.
func SetFormat(batch kv.Batch, format string) { batch.SetPointer(pointerFormat, []byte(format)) }

// Settled returns the last settled block, or false if there is none yet.
func Settled(ctx context.Context, store kv.Reader) (ref chain.Ref, ok bool, err error) {
	pointer, err := store.Pointer(ctx, pointerSettled)
	if errors.Is(err, kv.ErrNotFound) {
		return ref, false, nil
	}
	if err != nil {
		return ref, false, fmt.Errorf("archive: settled: %w", err)
	}
	ref, err = decodeRef(pointer)
	return ref, err == nil, err
}

func decodeRef(pointer []byte) (ref chain.Ref, err error) {
	if len(pointer) != 8+common.HashLength {
		return ref, fmt.Errorf("%w: the settled pointer has %d bytes", ErrCorrupt, len(pointer))
	}
	return chain.Ref{Number: binary.BigEndian.Uint64(pointer), Hash: common.Hash(pointer[8:])}, nil
}

// SetSettled sets the last settled block. It must be in the same batch as the block's rows.
func SetSettled(batch kv.Batch, ref chain.Ref) {
	batch.SetPointer(pointerSettled, append(binary.BigEndian.AppendUint64(nil, ref.Number), ref.Hash[:]...))
}
