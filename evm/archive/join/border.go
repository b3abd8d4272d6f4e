package join

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ashlar/evm/archive"
	"ashlar/history/audit"
	historyrows "ashlar/history/rows"
	"ashlar/kv"
)

// findBorder finds out which archive is the upper one, from what they hold.
func (j *join) findBorder() error {
	a, b := j.into, j.other
	if a.Format != b.Format {
		return fmt.Errorf("%w: one has the format %q, the other one %q (want the same: both with a trace index or both without, and of the same version)", ErrFit, a.Format, b.Format)
	}
	for _, r := range []archive.Range{a, b} {
		if e := r.Extent; e.Tries > e.State {
			return fmt.Errorf("%w: one has states from block %d on, but trie nodes from block %d on only (want the trie nodes of all its states)", ErrFit, e.State, e.Tries)
		}
	}
	switch {
	case b.Extent.State == a.Settled.Number && b.Settled.Number > a.Settled.Number:
		j.above, j.border = true, a.Settled.Number
	case a.Extent.State == b.Settled.Number && b.Extent.State < a.Extent.State:
		j.border = b.Settled.Number
	default:
		return j.explainMisfit()
	}
	return nil
}

// explainMisfit returns why no border can be found.
func (j *join) explainMisfit() error {
	a, b := j.into, j.other
	hold := fmt.Sprintf("one has states from block %d to %d, the other from %d to %d", a.Extent.State, a.Settled.Number, b.Extent.State, b.Settled.Number)
	lower, upper := a, b
	if b.Extent.State < a.Extent.State {
		lower, upper = b, a
	}
	switch first, last := upper.Extent.State, lower.Settled.Number; {
	case first > last:
		return fmt.Errorf("%w: %s: those of blocks %d to %d are missing (want the lower one to end with block %d)", ErrFit, hold, last+1, first-1, first)
	case upper.Settled.Number <= last:
		return fmt.Errorf("%w: %s: one has all the states of the other, so there is nothing to join", ErrFit, hold)
	default:
		return fmt.Errorf("%w: %s: they overlap; take the lower one back by `ashlar rewind` with --to %d", ErrFit, hold, first)
	}
}

// checkBorder compares the archives at the border, before anything is written.
func (j *join) checkBorder(ctx context.Context) error {
	if !j.above && j.into.Removed != nil {
		// Versions older than its first state stay in an archive with a window, and differ from
		// those of the lower one.
		return fmt.Errorf("%w: older history was removed from the upper archive, so older blocks cannot be added to it (want it added to the lower one, by `ashlar join` there)", ErrFit)
	}
	if err := j.checkHeaders(ctx); err != nil {
		return err
	}
	for _, t := range []*kv.Table{j.tables.Accounts, j.tables.Slots, j.tables.TrieNodes} {
		if err := j.checkState(ctx, t); err != nil {
			return err
		}
	}
	return nil
}

// checkHeaders compares the headers of the genesis and of the border, with their total
// difficulty, and the schedules of forks.
func (j *join) checkHeaders(ctx context.Context) error {
	for _, number := range []uint64{0, j.border} {
		ours, err := historyrows.OfBlock(ctx, j.to, j.tables.Headers, number, nil)
		if err != nil {
			return err
		}
		theirs, err := historyrows.OfBlock(ctx, j.from, j.tables.Headers, number, nil)
		if err != nil {
			return fmt.Errorf("the other archive: %w", err)
		}
		if bytes.Equal(ours, theirs) {
			continue
		}
		a, err := archive.ParseHeader(ours)
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
		b, err := archive.ParseHeader(theirs)
		if err != nil {
			return fmt.Errorf("the other archive: block %d: %w", number, err)
		}
		if a.Hash != b.Hash {
			return fmt.Errorf("%w: %w: block %d has the hash %#x, in the other archive %#x", ErrFit, archive.ErrOtherChain, number, a.Hash, b.Hash)
		}
		return fmt.Errorf("%w: block %d has the total difficulty %v and the size %d, in the other archive %v and %d", ErrFit, number, a.TotalDifficulty, a.Size, b.TotalDifficulty, b.Size)
	}
	upper := j.upper()
	_, store := j.stores()
	row, err := historyrows.OfBlock(ctx, store, j.tables.Headers, upper.Settled.Number, nil)
	if err != nil {
		return err
	}
	last, err := archive.ParseHeader(row)
	if err != nil {
		return err
	}
	if err := archive.CheckSchedule(j.lower().Genesis.Config, upper.Genesis.Config, upper.Settled.Number, last.Time); err != nil {
		return fmt.Errorf("%w: %w", ErrFit, err)
	}
	return nil
}

// checkState compares the rows of the state at the border in the upper archive with the
// newest ones in the lower archive.
func (j *join) checkState(ctx context.Context, t *kv.Table) error {
	lower, upper := j.stores()
	j.progress.Begin("compare "+t.Name, 1<<16)
	var value []byte
	for row, err := range upper.Walk(ctx, t, j.border) {
		if err != nil {
			return err
		}
		j.progress.Walked(row.Walked)
		j.progress.Read(1)
		if row.Sort != j.border {
			continue
		}
		if t == j.tables.TrieNodes {
			value, _, err = archive.NewestNode(ctx, lower, row.Partition, j.border, value[:0])
		} else {
			value, _, err = lower.Newest(ctx, t, row.Partition, j.border, value[:0])
		}
		missing := errors.Is(err, kv.ErrNotFound)
		if err != nil && !missing {
			return fmt.Errorf("%s, %s: %w", t.Name, archive.DescribeKey(t, row.Partition, row.Sort), err)
		}
		want := row.Value
		if t == j.tables.TrieNodes && !bytes.Equal(value, want) { // a window stores them in other forms
			if want, _, err = archive.NewestNode(ctx, upper, row.Partition, j.border, nil); err != nil {
				return fmt.Errorf("%s, %s: %w", t.Name, archive.DescribeKey(t, row.Partition, row.Sort), err)
			}
		}
		if missing || !bytes.Equal(value, want) {
			found := "none"
			if !missing {
				found = audit.DescribeValue(value, 0)
			}
			return fmt.Errorf("%w: %s, %s: as of block %d the upper archive has a row with %s, the lower one %s (run `ashlar verify` on both)", ErrFit, t.Name,
				archive.DescribeKey(t, row.Partition, row.Sort), j.border, audit.DescribeValue(row.Value, 0), found)
		}
	}
	return nil
}

// stores returns the stores of the lower and the upper archive.
func (j *join) stores() (lower, upper kv.Store) {
	if j.above {
		return j.to, j.from
	}
	return j.from, j.to
}
