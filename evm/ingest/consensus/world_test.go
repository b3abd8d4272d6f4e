package consensus_test

import (
	"log/slog"
	"math/big"
	"testing"

	"ashlar/chain"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/consensus"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/engine"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// follower is a follower that makes blocks too.
type follower struct {
	*ingesttest.Follower
	t *testing.T
}

func newFollower(t *testing.T, depths ingest.Depths) *follower {
	t.Helper()
	return &follower{ingesttest.NewFollower(t, depths), t}
}

// grow makes blocks upon a parent. salt makes them others than those of another salt.
func (f *follower) grow(parent *types.Block, count int, salt uint64) (blocks []*types.Block) {
	f.t.Helper()
	if err := f.SetHead(f.t.Context(), parent.Hash(), chain.Ref{}, chain.Ref{}); err != nil {
		f.t.Fatal(err)
	}
	for range count {
		block, _, err := f.Build(f.t.Context(), func(parent *types.Header, _ *big.Int) (execute.Attributes, types.Transactions, error) {
			paid := types.Withdrawal{Index: salt, Address: common.Address{byte(salt), 1}, Amount: 1 + salt}
			return execute.Attributes{Timestamp: parent.Time + 1, GasLimit: parent.GasLimit, Withdrawals: types.Withdrawals{&paid}}, nil, nil
		})
		if err != nil {
			f.t.Fatal(err)
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// builder makes blocks that are right.
func builder(t *testing.T) *follower {
	return newFollower(t, ingest.Depths{Unfinalized: 1 << 20, Most: 1 << 20})
}

// driven is a chain that is driven by the test.
type driven struct {
	*follower
	chain *consensus.Chain
}

func newDriven(t *testing.T, depths ingest.Depths) *driven {
	f := newFollower(t, depths)
	return &driven{f, consensus.New(f.Follower.Follower, nil, slog.New(slog.DiscardHandler))}
}

// send sends a block.
func (d *driven) send(block *types.Block) engine.Status {
	d.t.Helper()
	status, err := d.chain.NewPayload(d.t.Context(), block)
	if err != nil {
		d.t.Fatal(err)
	}
	return status
}

// tell tells a forkchoice, of which any block may be nil.
func (d *driven) tell(head, safe, finalized *types.Block) (engine.Status, error) {
	d.t.Helper()
	hash := func(block *types.Block) common.Hash {
		if block == nil {
			return common.Hash{}
		}
		return block.Hash()
	}
	return d.chain.UpdateForkchoice(d.t.Context(), engine.Forkchoice{Head: hash(head), Safe: hash(safe), Finalized: hash(finalized)})
}

// mustTell tells a forkchoice that is to be followed.
func (d *driven) mustTell(head, safe, finalized *types.Block) {
	d.t.Helper()
	if status, err := d.tell(head, safe, finalized); err != nil || status.Verdict != engine.Valid || *status.LatestValid != head.Hash() {
		d.t.Fatalf("head %d: %+v, %v", head.NumberU64(), status, err)
	}
}

// expect compares a status.
func (d *driven) expect(what string, got engine.Status, verdict engine.Verdict, last *types.Block) {
	d.t.Helper()
	switch {
	case got.Verdict != verdict:
		d.t.Errorf("%s: %+v, expected %s", what, got, verdict)
	case (got.LatestValid == nil) != (last == nil), last != nil && *got.LatestValid != last.Hash():
		d.t.Errorf("%s: the latest valid block is %v, expected %v", what, got.LatestValid, last)
	case (got.Why != "") != (verdict == engine.Invalid):
		d.t.Errorf("%s: it is said of it: %q", what, got.Why)
	}
}

// broken is a block that breaks a rule: its state root is another.
func broken(block *types.Block) *types.Block {
	header := block.Header()
	header.Root[3]++
	return types.NewBlockWithHeader(header).WithBody(*block.Body())
}

// upon is a block with another parent, which is right only if its parent is.
func upon(parent, block *types.Block) *types.Block {
	header := block.Header()
	header.ParentHash = parent.Hash()
	return types.NewBlockWithHeader(header).WithBody(*block.Body())
}

func ref(block *types.Block) chain.Ref {
	return chain.Ref{Number: block.NumberU64(), Hash: block.Hash()}
}
