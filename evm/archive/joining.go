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
	"github.com/ethereum/go-ethereum/core"
)

// Joining is what `ashlar join` is doing to an archive. Nothing opens it before that is
// complete.
type Joining struct {
	Border uint64 // last block of the lower range, and first block with state of the upper one
	Above  bool   // rows above the border are added, else those up to it
	State  []byte // how far it is, in the form of package join
}

// joiningHead is the length of the pointer without its State.
const joiningHead = 8 + 1

// readJoining returns what is being joined, or false.
func readJoining(ctx context.Context, store kv.Reader) (j Joining, under bool, err error) {
	value, err := store.Pointer(ctx, pointerJoin)
	switch {
	case errors.Is(err, kv.ErrNotFound) || err == nil && len(value) == 0:
		return j, false, nil
	case err != nil:
		return j, false, fmt.Errorf("archive: join: %w", err)
	case len(value) < joiningHead || value[8] > 1:
		return j, false, fmt.Errorf("%w: the join pointer is %#x", ErrCorrupt, value)
	}
	return Joining{Border: binary.BigEndian.Uint64(value), Above: value[8] == 1, State: value[joiningHead:]}, true, nil
}

// SetJoining records what is being joined; nil: nothing.
func SetJoining(batch kv.Batch, j *Joining) {
	if j == nil {
		batch.SetPointer(pointerJoin, nil)
		return
	}
	value := append(binary.BigEndian.AppendUint64(nil, j.Border), 0)
	if j.Above {
		value[8] = 1
	}
	batch.SetPointer(pointerJoin, append(value, j.State...))
}

// checkJoined returns rows.ErrJoining if a join is not complete.
func checkJoined(ctx context.Context, store kv.Reader) error {
	j, under, err := readJoining(ctx, store)
	if err != nil || !under {
		return err
	}
	undo := ""
	if j.Above {
		undo = fmt.Sprintf(", or give it up by `ashlar rewind` with --to %d", j.Border)
	}
	return fmt.Errorf("%w: run `ashlar join` again with the same --from%s", rows.ErrJoining, undo)
}

// Range is what an archive holds.
type Range struct {
	Format  string
	Genesis *core.Genesis // without its accounts
	Extent  Extent
	Settled chain.Ref
	Began   chain.Ref // the block with whose state the archive was made
	Removed *Extent   // the history before which a window has removed all rows, or is to; nil: none has moved
	Older   uint64    // the lowest block before the first one that was added, also in part; 0: none was
}

// ReadRange returns what a store holds, which may be joined already. It returns kv.ErrNotFound
// if there are no blocks.
func ReadRange(ctx context.Context, store kv.Reader) (r Range, j Joining, under bool, err error) {
	if err := rows.CheckFormat(ctx, store, formats()...); err != nil {
		return r, j, false, err
	}
	if j, under, err = readJoining(ctx, store); err != nil {
		return r, j, false, err
	}
	if !under || j.Above {
		if err := rows.CheckComplete(ctx, store, formats()...); err != nil {
			return r, j, false, err
		}
	}
	if r.Format, err = rows.Format(ctx, store); err != nil {
		return r, j, false, err
	}
	if r.Genesis, err = readGenesis(ctx, store); err != nil {
		return r, j, false, err
	}
	if r.Extent, err = readExtent(ctx, store); err != nil {
		return r, j, false, err
	}
	if removed, there, err := readExtentOf(ctx, store, pointerRemoved); err != nil {
		return r, j, false, err
	} else if there {
		r.Removed = &removed
	}
	if r.Older, _, err = readOlder(ctx, store); err != nil {
		return r, j, false, err
	}
	settled, any, err := rows.Settled(ctx, store)
	if err == nil && !any {
		err = fmt.Errorf("archive: settled: %w", kv.ErrNotFound)
	}
	if err != nil {
		return r, j, under, err
	}
	r.Settled = settled
	r.Began, err = readBegan(ctx, store)
	return r, j, under, err
}

// readBegan returns the block with whose state an archive was made.
func readBegan(ctx context.Context, store kv.Reader) (chain.Ref, error) {
	at, _, started, err := readStart(ctx, store)
	if started || err != nil {
		return at, err
	}
	history := newHistory(store, form{})
	genesis, err := history.Header(ctx, 0)
	if err != nil {
		return at, err
	}
	return chain.Ref{Hash: genesis.Hash}, nil
}

// SetBegan sets the block with whose state an archive was made.
func SetBegan(batch kv.Batch, at chain.Ref) {
	batch.SetPointer(pointerStart, encodeStart(at, common.Hash{}))
}

// SetRange sets where the history begins, the last settled block, and the history before which a window has
// removed all rows, unless that is nil.
func SetRange(batch kv.Batch, e Extent, settled chain.Ref, removed *Extent) {
	setExtent(batch, e)
	rows.SetSettled(batch, settled)
	if removed != nil {
		batch.SetPointer(pointerRemoved, encodeExtent(*removed))
	}
}
