package archive

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// pointerLayer1 is the block up to which blocks are known to be accepted on layer 1: number and hash.
const pointerLayer1 = "layer1"

// Layer1 returns what SetLayer1 stored last, perhaps in another process, or false. A rewind may have removed the block since.
func (a *Archive) Layer1(ctx context.Context) (ref chain.Ref, stored bool, err error) {
	value, err := a.store.Pointer(ctx, pointerLayer1)
	switch {
	case errors.Is(err, kv.ErrNotFound):
		return ref, false, nil
	case err != nil:
		return ref, false, fmt.Errorf("archive: accepted on L1: %w", err)
	case len(value) != 8+common.HashLength:
		return ref, false, fmt.Errorf("%w: the %s pointer has %d bytes", rows.ErrCorrupt, pointerLayer1, len(value))
	}
	return chain.Ref{Number: binary.BigEndian.Uint64(value), Hash: common.Hash(value[8:])}, true, nil
}

// SetLayer1 stores the block up to which blocks are known to be accepted on layer 1.
func (a *Archive) SetLayer1(ctx context.Context, ref chain.Ref) error {
	batch := a.store.NewBatch()
	batch.SetPointer(pointerLayer1, append(binary.BigEndian.AppendUint64(nil, ref.Number), ref.Hash[:]...))
	return a.store.Write(ctx, batch)
}
