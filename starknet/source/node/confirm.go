package node

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"ashlar/chain"
	"ashlar/starknet"
	"ashlar/starknet/blockhash"
)

// confirm checks that a quorum of the nodes sends the same contents for blocks of one of them
// whose hashes do not cover these: that node may have forged them. What hashes cover has
// passed the check in [Options]. It adds the nodes that send other contents to refuted, or by
// if too few send the same. Whether blocks are accepted on layer 1 is left to
// [Group.L1Accepted].
func (g *Group) confirm(ctx context.Context, agreed []*member, by *member, blocks []*starknet.Block, target chain.Ref, refuted map[*member]error) error {
	if g.quorum == 1 {
		return nil
	}
	covered := true
	for _, block := range blocks {
		block.Status = starknet.AcceptedOnL2
		covered = covered && blockhash.CoverageOf(g.options.ChainID, &block.Header) == blockhash.CoversReceipts
	}
	if covered {
		return nil
	}
	same, differ := []*member{by}, make(map[*member]error)
	for _, m := range agreed {
		if m == by || len(same) == g.quorum || time.Now().Before(m.resting) {
			continue
		}
		theirs, err := g.proven(ctx, m, blocks[0].Number, target)
		if err != nil {
			continue
		}
		if err := compare(by, blocks, m, theirs); err != nil {
			differ[m] = err
			continue
		}
		same = append(same, m)
	}
	if len(same) == g.quorum {
		for m, err := range differ {
			refuted[m] = err
		}
		for _, m := range same { // who differed from a liar before
			delete(refuted, m)
		}
		return nil
	}
	err := fmt.Errorf("%d must send the same contents of blocks %d to %d, but %d did", g.quorum, blocks[0].Number, target.Number, len(same))
	for _, one := range differ {
		err = fmt.Errorf("%w: %w", err, one)
		refuted[by] = one
	}
	return err
}

// blame records nodes that sent other contents of blocks than a quorum.
func (g *Group) blame(refuted map[*member]error) {
	for m, err := range refuted {
		m.record.failed(err, true)
		m.options.Logger.Warn("a node sends a block with other contents than a quorum", "error", err)
		g.rest(m)
	}
}

// compare returns an error for the first block with other contents at another node.
func compare(by *member, blocks []*starknet.Block, other *member, theirs []*starknet.Block) error {
	for i, block := range blocks {
		if what := difference(block, theirs[i]); what != "" {
			return fmt.Errorf("block %d has another %s at %s than at %s", block.Number, what, by.Status().Name, other.Status().Name)
		}
	}
	return nil
}

// difference names what differs in two versions of a block, empty if nothing does. It compares
// only what honest nodes of all versions say alike: others have no gas prices, say, or another
// kind for early messages from layer 1.
func difference(a, b *starknet.Block) string {
	switch {
	case a.Timestamp != b.Timestamp:
		return "timestamp"
	case a.NewRoot != b.NewRoot:
		return "state root"
	case len(a.Transactions) != len(b.Transactions):
		return "number of transactions"
	}
	for i := range a.Transactions {
		t, u := &a.Transactions[i], &b.Transactions[i]
		r, s := &t.Receipt, &u.Receipt
		switch {
		case t.Hash != u.Hash:
			return fmt.Sprintf("transaction %d", i)
		case !reflect.DeepEqual(r.Events, s.Events):
			return fmt.Sprintf("list of events of transaction %d", i)
		case r.Reverted != s.Reverted || r.ActualFee != s.ActualFee || !reflect.DeepEqual(r.Messages, s.Messages):
			return fmt.Sprintf("receipt of transaction %d", i)
		}
	}
	return ""
}
