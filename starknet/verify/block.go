package verify

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"ashlar/history/audit"
	"ashlar/history/postings"
	"ashlar/history/rows"
	"ashlar/kv"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/blockhash"
)

// blockCheck checks single blocks. It implements [audit.BlockCheck].
type blockCheck struct {
	*checker
	block *starknet.Block // being checked
}

func (c *checker) newBlockCheck() audit.BlockCheck { return &blockCheck{checker: c} }

// Check implements audit.BlockCheck.
func (c *blockCheck) Check(ctx context.Context, number uint64, to kv.Putter) (transactions int, err error) {
	if c.block, err = c.reader.Block(ctx, number); err != nil {
		return 0, c.unreadable(ctx, err)
	}
	if err := archive.Fits(c.block); err != nil {
		return 0, c.of(c.tables.Transactions, "a block that the format can hold", err)
	}
	verdict, err := c.checkHash()
	if err != nil {
		return 0, err
	}
	if err := c.checkLinks(ctx, verdict); err != nil {
		return 0, err
	}
	archive.PutBlock(to, c.block)
	c.events.Add(uint64(c.block.EventCount()))
	if verdict == blockhash.Confirmed {
		c.recomputed.Add(1)
	} else {
		c.taken.Add(1)
	}
	return len(c.block.Transactions), nil
}

// unreadable translates an error of reading a block.
func (c *blockCheck) unreadable(ctx context.Context, err error) error {
	about := (*archive.RowError)(nil)
	if !errors.As(err, &about) {
		return err
	}
	partition := rows.Chunk(about.Table.BlockOf(about.Sort))
	return c.Unreadable(ctx, about.Table, partition[:], about.Sort, about.Err)
}

// of returns a finding about the first row of the block in a table.
func (c *blockCheck) of(t *kv.Table, wanted string, got any) *audit.Finding {
	return c.at(t, c.block.Number, wanted, got)
}

// at returns a finding about the first row of a block in a table.
func (c *blockCheck) at(t *kv.Table, number uint64, wanted string, got any) *audit.Finding {
	partition := rows.Chunk(number)
	return c.Finding(t, partition[:], number<<t.IndexBits, wanted, fmt.Sprint(got))
}

// checkHash recomputes the block's hash, as far as possible.
func (c *blockCheck) checkHash() (blockhash.Verdict, error) {
	verdict, err := c.hashes.CheckUnsigned(c.block)
	wrong := (*blockhash.Error)(nil)
	if !errors.As(err, &wrong) {
		return verdict, err
	}
	whole := *c.block
	var f *audit.Finding
	switch wrong.What {
	case blockhash.EventCommitment:
		whole.Commitments.Events = wrong.Expected
		f = c.of(c.tables.Events, fmt.Sprintf("events with the commitment %s, as in the header", wrong.Found), wrong.Expected)
		f.Key = fmt.Sprintf("block %d, one of the rows of its %d events", c.block.Number, c.block.EventCount())
	case blockhash.ReceiptCommitment:
		whole.Commitments.Receipts = wrong.Expected
		f = c.of(c.tables.Transactions, fmt.Sprintf("receipts with the commitment %s, as in the header", wrong.Found), wrong.Expected)
	}
	if _, other := c.hashes.CheckUnsigned(&whole); f == nil || other == nil { // the header is wrong
		f = c.of(c.tables.Headers, fmt.Sprintf("the %s of the block's contents, %s", wrong.What, wrong.Expected), wrong.Found)
	}
	return 0, f
}

// checkLinks compares the block's hash with its child's parent hash or the settled pointer.
func (c *blockCheck) checkLinks(ctx context.Context, verdict blockhash.Verdict) error {
	number, hash := c.block.Number, c.block.Hash
	if number == c.From && number > c.First {
		if err := c.checkParent(ctx); err != nil {
			return err
		}
	}
	if number == c.Settled.Number {
		if c.block.Ref() != c.Settled {
			return c.of(c.tables.Headers, fmt.Sprintf("the hash in the settled pointer, %s", starknet.Felt(c.Settled.Hash)), hash)
		}
		return nil
	}
	child, err := c.reader.Header(ctx, number+1)
	switch {
	case err != nil:
		return c.unreadable(ctx, &archive.RowError{Table: c.tables.Headers, Sort: number + 1, Err: err})
	case child.Parent == hash:
		return nil
	case verdict == blockhash.Confirmed:
		return c.at(c.tables.Headers, number+1, fmt.Sprintf("the hash of block %d as parent hash, %s", number, hash), child.Parent)
	}
	return c.of(c.tables.Headers, fmt.Sprintf("the parent hash of block %d, %s", number+1, child.Parent), hash)
}

// checkParent compares the parent hash of the first block of a range with the hash of the
// previous block.
func (c *blockCheck) checkParent(ctx context.Context) error {
	number := c.block.Number - 1
	parent, err := c.reader.Header(ctx, number)
	if err != nil {
		return c.unreadable(ctx, &archive.RowError{Table: c.tables.Headers, Sort: number, Err: err})
	}
	if parent.Hash != c.block.Parent {
		return c.of(c.tables.Headers, fmt.Sprintf("the hash of block %d as parent hash, %s", number, parent.Hash), c.block.Parent)
	}
	return nil
}

// NameOf implements audit.BlockCheck. It names the contract or key of a term.
func (c *blockCheck) NameOf(partition []byte) string {
	is := func(t postings.Term) bool { return bytes.Equal(t[:], partition) }
	if is(archive.AnyTerm()) {
		return "that of every event"
	}
	for i := range c.block.Transactions {
		for _, event := range c.block.Transactions[i].Receipt.Events {
			if is(archive.AddressTerm(event.From)) {
				return fmt.Sprintf("the contract %s", event.From)
			}
			if len(event.Keys) > 0 && is(archive.EventTerm(event.From, event.Keys[0])) {
				return fmt.Sprintf("the contract %s with the first key %s", event.From, event.Keys[0])
			}
			for at, key := range event.Keys[:min(len(event.Keys), archive.IndexedKeys)] {
				if is(archive.KeyTerm(at, key)) {
					return fmt.Sprintf("the value %s of key %d", key, at)
				}
			}
		}
	}
	return ""
}
