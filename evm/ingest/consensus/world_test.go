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

// follower is a follower with a block builder.
type follower struct {
	*ingesttest.Follower
	t *testing.T
}

func newFollower(t *testing.T, depths ingest.Depths) *follower {
	t.Helper()
	return &follower{ingesttest.NewFollower(t, depths), t}
}

// grow adds blocks to a parent. Blocks with different salts differ.
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

// builder returns a follower that builds valid blocks.
func builder(t *testing.T) *follower {
	return newFollower(t, ingest.Depths{Unfinalized: 1 << 20, Most: 1 << 20})
}

// driven is a chain driven by the test.
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

// tell sends a forkchoice; any of its blocks may be nil.
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

// mustTell sends a forkchoice that must be accepted.
func (d *driven) mustTell(head, safe, finalized *types.Block) {
	d.t.Helper()
	if status, err := d.tell(head, safe, finalized); err != nil || status.Verdict != engine.Valid || *status.LatestValid != head.Hash() {
		d.t.Fatalf("head %d: %+v, %v", head.NumberU64(), status, err)
	}
}

// expect compares a status with the expected one.
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

// broken returns an invalid block: its state root is wrong.
func broken(block *types.Block) *types.Block {
	header := block.Header()
	header.Root[3]++
	return types.NewBlockWithHeader(header).WithBody(*block.Body())
}

// upon returns a block with another parent, valid only if its parent is.
func upon(parent, block *types.Block) *types.Block {
	header := block.Header()
	header.ParentHash = parent.Hash()
	return types.NewBlockWithHeader(header).WithBody(*block.Body())
}

func ref(block *types.Block) chain.Ref {
	return chain.Ref{Number: block.NumberU64(), Hash: block.Hash()}
}
