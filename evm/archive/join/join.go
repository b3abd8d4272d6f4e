// Package join puts two archives of one chain together: one whose last settled block is the
// first block with state of the other. That block is the border.
//
//	lower   ...........|             versions up to the border
//	upper              |.........    the state at the border, and versions above it
//	joined  .....................    as if it had been made in one go
//
// The rows of one archive are copied into the other, which can be either of them. The state at
// the border is stored twice, as versions of different age, so that of the upper one is
// removed. Then only the rows of trie nodes depend on the range that they are from: which
// branches are whole. They are encoded again up to the next multiple of 2^20 blocks, so that
// all rows are those of an archive made in one go.
//
// The order of the writes, each durable before the next:
//
//	join = border      from here on nothing opens the archive, see archive.Joining
//	epoch = odd        only if rows at or above the border change
//	...                then a pause, for other processes that serve the archive, until they have ended
//	...                rows are copied, encoded again and removed
//	first, settled     of the joined range
//	epoch = even
//	join = none
//
// A crash anywhere leaves an archive on which [Run] can be run again with the same other one.
package join

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/history/audit"
	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/kv"
)

// ErrFit means that two archives cannot be joined.
var ErrFit = errors.New("the archives do not fit together")

// Done is what a join did.
type Done struct {
	First   uint64    // first block with state of the joined archive
	Border  uint64    // where they were joined
	Settled chain.Ref // last block of the joined archive
	Rows    uint64    // written and removed by this run
}

// state is how far a join is. It is stored as JSON.
type state struct {
	Source string `json:"source"` // the other archive
	Again  bool   `json:"again"`  // rows above the border are encoded again; all are copied
	Table  string `json:"table"`  // of the step
	After  []byte `json:"after"`  // last partition of it that is complete
}

// join is one run.
type join struct {
	to, from    kv.Store
	into, other archive.Range // what they hold
	border      uint64
	above       bool // other is the upper one
	state       state
	batch       kv.Batch
	done        Done
	tables      archive.TableSet
	progress    *audit.Progress
	batchBytes  int
}

// Options change how archives are joined. The zero value is right for nearly all.
type Options struct {
	Progress   *audit.Progress // may be nil
	BatchBytes int             // about how much is written at once; 0: 4 MiB
}

// Run copies the rows of an archive into another one, or completes a join that was
// interrupted. Nobody else may have the store open to which they are copied, and nobody may
// write to the other.
func Run(ctx context.Context, to, from kv.Store, o Options) (Done, error) {
	j := &join{to: to, from: from, batch: to.NewBatch(), progress: o.Progress, batchBytes: cmp.Or(o.BatchBytes, 4<<20), tables: archive.NamedTables()}
	under, err := j.begin(ctx)
	if err != nil {
		return j.done, err
	}
	if !under {
		if err := j.checkBorder(ctx); err != nil {
			return j.done, err
		}
		j.noteOlder()
		if err := j.flushDurably(ctx, true); err != nil {
			return j.done, err
		}
	}
	if err := j.run(ctx); err != nil {
		return j.done, fmt.Errorf("the join at block %d is not complete; run it again: %w", j.border, err)
	}
	return j.done, nil
}

// begin reads what the archives hold, and how far the join is.
func (j *join) begin(ctx context.Context) (under bool, err error) {
	if _, err := archive.Open(ctx, j.from); err != nil {
		return false, fmt.Errorf("the other archive: %w", err)
	}
	if j.other, _, _, err = archive.ReadRange(ctx, j.from); err != nil {
		return false, fmt.Errorf("the other archive: %w", err)
	}
	into, joining, under, err := archive.ReadRange(ctx, j.to)
	if err != nil {
		return false, err
	}
	j.into = into
	source := fmt.Sprintf("%d to %s", j.other.Extent.State, j.other.Settled)
	if under {
		if err := json.Unmarshal(joining.State, &j.state); err != nil {
			return false, fmt.Errorf("%w: the join pointer: %v", archive.ErrCorrupt, err)
		}
		if j.state.Source != source {
			return false, fmt.Errorf("%w: the join that is not complete is with blocks %s, the other archive has blocks %s", ErrFit, j.state.Source, source)
		}
		j.border, j.above = joining.Border, joining.Above
	} else {
		if err := j.findBorder(); err != nil {
			return false, err
		}
		j.state = state{Source: source}
	}
	j.done = Done{First: j.extent().State, Border: j.border, Settled: j.upper().Settled}
	return under, nil
}

func (j *join) lower() archive.Range {
	if j.above {
		return j.into
	}
	return j.other
}

func (j *join) upper() archive.Range {
	if j.above {
		return j.other
	}
	return j.into
}

// extent returns where the joined archive begins. The blocks of both are stored without a gap
// up to the border.
func (j *join) extent() archive.Extent {
	state := j.lower().Extent.State
	return archive.Extent{Blocks: min(j.into.Extent.Blocks, j.other.Extent.Blocks), State: state, Tries: state}
}

// noteOlder notes the lowest block of which rows are copied that nothing may ever read: those of an addition to the other
// archive that was interrupted, and those of older blocks if the join is given up.
func (j *join) noteOlder() {
	lowest := j.other.Older
	if j.above {
		lowest = 0
		if older, there := j.olderBlocks(); there {
			lowest = older.first
		}
	}
	if lowest > 0 && (j.into.Older == 0 || lowest < j.into.Older) {
		archive.SetOlder(j.batch, lowest)
	}
}

// run does everything after the checks.
func (j *join) run(ctx context.Context) error {
	epoch, removing, err := kv.Epoch(ctx, j.to)
	if err != nil {
		return err
	}
	if !j.above && !removing {
		if err := rows.SetEpoch(ctx, j.to, epoch, epoch+1); err != nil {
			return err
		}
		epoch++
	}
	if !j.above {
		if err := tip.AwaitReaders(ctx, j.to); err != nil {
			return err
		}
	}
	if !j.state.Again {
		if err := j.copyTables(ctx); err != nil {
			return err
		}
		j.state = state{Source: j.state.Source, Again: true}
		if err := j.flushDurably(ctx, true); err != nil {
			return err
		}
	}
	if !j.above {
		if err := j.settleUpper(ctx); err != nil {
			return err
		}
	}
	// Unsettled blocks hold rows that follow those that were encoded again.
	if err := tip.Clear(ctx, j.to, j.done.Settled); err != nil {
		return err
	}
	if err := j.flushDurably(ctx, false); err != nil {
		return err
	}
	archive.SetRange(j.batch, j.extent(), j.done.Settled, j.lower().Removed)
	if !j.above {
		archive.SetBegan(j.batch, j.other.Began)
	}
	if err := j.flushDurably(ctx, false); err != nil {
		return err
	}
	if !j.above {
		if err := rows.SetEpoch(ctx, j.to, epoch, epoch+1); err != nil {
			return err
		}
	}
	archive.SetJoining(j.batch, nil)
	return j.flushDurably(ctx, false)
}

// flush writes the batch if it has at least a number of bytes. mark says that the rows of the
// state's last partition are complete.
func (j *join) flush(ctx context.Context, least int, mark bool) error {
	if j.batch.Bytes() < least {
		return nil
	}
	if mark {
		encoded, err := json.Marshal(j.state)
		if err != nil {
			return err
		}
		archive.SetJoining(j.batch, &archive.Joining{Border: j.border, Above: j.above, State: encoded})
	}
	if j.batch.Rows() == 0 {
		return nil
	}
	if err := j.to.Write(ctx, j.batch); err != nil {
		return err
	}
	j.batch.Reset()
	return nil
}

func (j *join) flushDurably(ctx context.Context, mark bool) error {
	if err := j.flush(ctx, 0, mark); err != nil {
		return err
	}
	return j.to.Sync(ctx)
}

func (j *join) count(n uint64) {
	j.done.Rows += n
	j.progress.Read(n)
}
