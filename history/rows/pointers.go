package rows

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ashlar/chain"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// The pointers of every network.
const (
	pointerFormat  = "format"  // the family, and the version of docs/format.md that the rows follow
	pointerSettled = "settled" // number and hash of the last settled block
	pointerRewind  = "rewind"  // number and hash of the block that the last rewind goes back to
)

// Format returns the format of the store's contents, or kv.ErrNotFound if it is empty.
func Format(ctx context.Context, store kv.Reader) (string, error) {
	format, err := store.Pointer(ctx, pointerFormat)
	if err != nil {
		return "", fmt.Errorf("archive: %w", err)
	}
	return string(format), nil
}

// CheckComplete returns ErrRewinding if a rewind of the store is not complete, else what
// [CheckFormat] returns.
func CheckComplete(ctx context.Context, store kv.Reader, wanted ...string) error {
	if err := CheckFormat(ctx, store, wanted...); err != nil {
		return err
	}
	_, removing, err := kv.Epoch(ctx, store)
	if err != nil || !removing {
		return err
	}
	to, err := RewindTarget(ctx, store)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: to complete it, run `ashlar rewind` with --to %d", ErrRewinding, to.Number)
}

// CheckFormat returns ErrFormat if the format of the store's contents is none of those
// wanted, and kv.ErrNotFound if the store is empty.
func CheckFormat(ctx context.Context, store kv.Reader, wanted ...string) error {
	format, err := Format(ctx, store)
	if err != nil || slices.Contains(wanted, format) {
		return err
	}
	quoted := make([]string, len(wanted))
	for i, text := range wanted {
		quoted[i] = strconv.Quote(text)
	}
	return fmt.Errorf("%w: the store has %q, this version reads %s", ErrFormat, format, strings.Join(quoted, ", "))
}

// SetFormat sets the format of the store's contents.
func SetFormat(batch kv.Batch, format string) { batch.SetPointer(pointerFormat, []byte(format)) }

// Settled returns the last settled block, or false if there is none yet.
func Settled(ctx context.Context, store kv.Reader) (ref chain.Ref, ok bool, err error) {
	return Block(ctx, store, pointerSettled)
}

// Block returns the block that a pointer names, or false if there is no such pointer.
func Block(ctx context.Context, store kv.Reader, name string) (ref chain.Ref, ok bool, err error) {
	pointer, err := store.Pointer(ctx, name)
	if errors.Is(err, kv.ErrNotFound) {
		return ref, false, nil
	}
	if err != nil {
		return ref, false, fmt.Errorf("archive: %s: %w", name, err)
	}
	ref, err = decodeRef(name, pointer)
	return ref, err == nil, err
}

// SetBlock sets a pointer to a block: its number and hash.
func SetBlock(batch kv.Batch, name string, ref chain.Ref) {
	batch.SetPointer(name, append(binary.BigEndian.AppendUint64(nil, ref.Number), ref.Hash[:]...))
}

func decodeRef(name string, pointer []byte) (ref chain.Ref, err error) {
	if len(pointer) != 8+common.HashLength {
		return ref, fmt.Errorf("%w: the %s pointer has %d bytes", ErrCorrupt, name, len(pointer))
	}
	return chain.Ref{Number: binary.BigEndian.Uint64(pointer), Hash: common.Hash(pointer[8:])}, nil
}

// SetSettled sets the last settled block. It must be in the same batch as the block's rows.
func SetSettled(batch kv.Batch, ref chain.Ref) {
	SetBlock(batch, pointerSettled, ref)
}

// SetEpoch durably sets the store's epoch (see kv.EpochPointer), which must be old.
func SetEpoch(ctx context.Context, store kv.Store, old, epoch uint64) error {
	var before []byte
	if old > 0 {
		before = binary.BigEndian.AppendUint64(nil, old)
	}
	if err := store.CompareAndSet(ctx, kv.EpochPointer, before, binary.BigEndian.AppendUint64(nil, epoch)); err != nil {
		return fmt.Errorf("archive: epoch %d: %w", epoch, err)
	}
	return nil
}

// RewindTarget returns the block that the last rewind goes back to.
func RewindTarget(ctx context.Context, store kv.Reader) (chain.Ref, error) {
	pointer, err := store.Pointer(ctx, pointerRewind)
	if err != nil {
		return chain.Ref{}, fmt.Errorf("archive: rewind: %w", err)
	}
	return decodeRef(pointerRewind, pointer)
}

// SetRewindTarget sets the block that a rewind goes back to. It must be durable before the
// epoch becomes odd.
func SetRewindTarget(batch kv.Batch, ref chain.Ref) {
	SetBlock(batch, pointerRewind, ref)
}
