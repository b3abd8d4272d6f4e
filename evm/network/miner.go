package network

import (
	"context"
	"log/slog"
	"math/big"
	"time"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/pool"
	"ashlar/evm/source/demo"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/core/types"
)

// epochBlocks are finalized together on the demo's network, as on Ethereum's,
// which makes as many in an epoch of its consensus.
const epochBlocks = 32

// miner builds the demo's blocks.
type miner struct {
	follower *ingest.Follower
	runPool  func(context.Context) error // adapts the pool to every new head
	tip      *tip.Tip
	pool     *pool.Pool
	traffic  *demo.Traffic
	next     uint64
}

// newMiner continues the network at its head.
func newMiner(ctx context.Context, shown *demo.Network, n *network) (*miner, error) {
	n.chain.SetPool(pool.New(n.executor.Config(), pool.DefaultLimits()))
	view, err := n.chain.View()
	if err != nil {
		return nil, err
	}
	traffic, err := replay(ctx, shown, view.Head().Number, view.Header)
	if err != nil {
		return nil, err
	}
	m := &miner{
		follower: n.follower(ingest.DefaultDepths()), runPool: func(ctx context.Context) error { return n.chain.RunPool(ctx, nil) }, tip: n.tip, pool: n.chain.Pool(),
		traffic: traffic, next: view.Head().Number + 1,
	}
	if n.tip.Forkchoice().Finalized == (chain.Ref{}) { // the past that was just made
		settled := n.tip.Forkchoice().Head.Settled()
		err = m.follower.SetHead(ctx, view.Head().Hash, settled, settled)
	}
	return m, err
}

// replay is the network's traffic after a block, which depends on all before.
func replay(ctx context.Context, shown *demo.Network, last uint64, header func(context.Context, uint64) (*archive.Header, error)) (*demo.Traffic, error) {
	traffic, err := shown.Traffic()
	if err != nil {
		return nil, err
	}
	for number := uint64(1); number <= last; number++ {
		known, err := header(ctx, number)
		if err != nil {
			return nil, err
		}
		if _, err := traffic.Next(number, known.BaseFee); err != nil {
			return nil, err
		}
	}
	return traffic, nil
}

// mine builds the next block, of this moment, from the network's own traffic and
// from what waits in its pool.
func (m *miner) mine(ctx context.Context) error {
	block, leftOut, err := m.follower.Build(ctx, func(parent *types.Header, baseFee *big.Int) (execute.Attributes, types.Transactions, error) {
		contents, err := m.traffic.Next(m.next, baseFee)
		attributes := attributesOf(contents, parent)
		attributes.Timestamp = max(uint64(time.Now().Unix()), parent.Time+1)
		return attributes, append(contents.Transactions, m.pool.Executable(baseFee, parent.GasLimit)...), err
	})
	if err != nil {
		return err
	}
	for _, out := range leftOut {
		m.pool.Remove(out.Transaction.Hash()) // it would be left out again
	}
	warnOfLeftOut(m.next, leftOut)
	m.next++
	safe, finalized := m.forkchoice(block.NumberU64())
	return m.follower.SetHead(ctx, block.Hash(), safe, finalized)
}

// forkchoice says which blocks a consensus would call safe and finalized: those at
// the end of the epoch before last and of the one before that.
func (m *miner) forkchoice(head uint64) (safe, finalized chain.Ref) {
	branch := m.tip.Forkchoice().Head
	epoch := head / epochBlocks * epochBlocks
	safe, _ = branch.At(epoch - min(epoch, epochBlocks))
	finalized, _ = branch.At(epoch - min(epoch, 2*epochBlocks))
	return safe, finalized
}

func attributesOf(contents demo.Contents, parent *types.Header) execute.Attributes {
	return execute.Attributes{
		Timestamp: contents.Timestamp, FeeRecipient: contents.FeeRecipient, PrevRandao: contents.PrevRandao,
		ParentBeaconRoot: contents.ParentBeaconRoot, SlotNumber: contents.SlotNumber, GasLimit: parent.GasLimit, Withdrawals: contents.Withdrawals,
	}
}

func warnOfLeftOut(number uint64, leftOut []execute.LeftOut) {
	for _, out := range leftOut {
		slog.Warn("transaction left out", "block", number, "hash", out.Transaction.Hash(), "error", out.Err)
	}
}
