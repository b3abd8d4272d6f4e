package network

import (
	"context"
	"errors"
	"log/slog"
	"math/big"
	"slices"
	"time"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/pool"
	"ashlar/evm/query"
	"ashlar/evm/source/demo"
	"ashlar/history/tip"
	"ashlar/retry"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// epochBlocks are finalized together on the demo's network, as on Ethereum's,
// which makes as many in an epoch of its consensus.
const epochBlocks = 32

// miner builds the demo's blocks.
type miner struct {
	follower *ingest.Follower
	chain    *query.Chain
	runPool  func(context.Context) error // adapts the pool to every new head
	tip      *tip.Tip
	pool     *pool.Pool
	traffic  *demo.Traffic
	next     uint64
	contents *demo.Contents // of the next block, if it was begun; nil: the traffic has not given them yet
	lacking  bool           // the last block lacks transactions: the traffic must resume before the next
	mining   *retry.Task
	log      *slog.Logger
}

// newMiner continues the network at its head.
func newMiner(ctx context.Context, shown *demo.Network, n *network) (*miner, error) {
	waiting, runPool := n.newPool(n.name)
	view, err := n.chain.View()
	if err != nil {
		return nil, err
	}
	last := view.Head().Number
	traffic, err := replay(ctx, shown, last, view.Header, view.State(last))
	if err != nil {
		return nil, err
	}
	m := &miner{
		follower: n.follower(ingest.DefaultDepths()), runPool: runPool, tip: n.tip, pool: waiting,
		chain: n.chain, traffic: traffic, next: last + 1, log: n.log(), mining: n.mining.begin("make blocks", n.name),
	}
	m.follower.Task = n.mining.begin("settle blocks", n.name)
	if n.tip.Forkchoice().Finalized == (chain.Ref{}) { // the past that was just made
		settled := n.tip.Forkchoice().Head.Settled()
		err = m.follower.SetHead(ctx, view.Head().Hash, settled, settled)
	}
	return m, err
}

// replay is the network's traffic after a block, which depends on all before.
func replay(ctx context.Context, shown *demo.Network, last uint64, header func(context.Context, uint64) (*archive.Header, error), state evm.State) (*demo.Traffic, error) {
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
	return traffic, traffic.Resume(nonces(ctx, state))
}

// nonces reads the nonces of accounts in a state.
func nonces(ctx context.Context, state evm.State) func(common.Address) (uint64, error) {
	return func(address common.Address) (uint64, error) {
		account, err := state.Account(ctx, evm.HashAddress(address))
		if err != nil || account == nil {
			return 0, err
		}
		return account.Nonce, nil
	}
}

// mine builds the next block, of this moment, from the network's own traffic and
// from what waits in its pool. After an error it can be called again.
func (m *miner) mine(ctx context.Context) error {
	if err := m.resume(ctx); err != nil {
		return err
	}
	block, leftOut, err := m.follower.Build(ctx, func(parent *types.Header, baseFee *big.Int) (execute.Attributes, types.Transactions, error) {
		if m.contents == nil {
			contents, err := m.traffic.Next(m.next, baseFee)
			if err != nil {
				return execute.Attributes{}, nil, err
			}
			m.contents = &contents
		}
		attributes := attributesOf(*m.contents, parent)
		attributes.Timestamp = max(uint64(time.Now().Unix()), parent.Time+1)
		return attributes, slices.Concat(m.contents.Transactions, m.pool.Executable(baseFee, parent.GasLimit)), nil
	})
	if err != nil {
		return err
	}
	// The block is the head, whatever fails now: the next one has contents of its own.
	m.next, m.contents, m.lacking = m.next+1, nil, len(leftOut) > 0
	for _, out := range leftOut {
		hash := out.Transaction.Hash()
		if _, _, waits := m.pool.Get(hash); waits && !staysInPool(out.Err) {
			m.log.Warn("transaction left out", "block", block.NumberU64(), "hash", hash, "error", out.Err)
			m.pool.Remove(hash) // it would be left out again
		}
	}
	safe, finalized := m.forkchoice(block.NumberU64())
	if err := m.follower.SetHead(ctx, block.Hash(), safe, finalized); err != nil {
		return err
	}
	m.mining.Succeeded()
	return nil
}

// resume has the traffic go on from the nonces of the head, if the last block lacks transactions.
func (m *miner) resume(ctx context.Context) error {
	if !m.lacking {
		return nil
	}
	view, err := m.chain.View()
	if err != nil {
		return err
	}
	if err := m.traffic.Resume(nonces(ctx, view.State(view.Head().Number))); err != nil {
		return err
	}
	m.lacking = false
	return nil
}

// staysInPool reports whether a transaction that was left out because of err stays in the pool. A later block may include it if it
// had no room or if an earlier one of its sender was left out. If its nonce is too low, a block has just included it, and the pool
// removes it when it follows that block: removed before, it would be accepted again until then.
func staysInPool(err error) bool {
	return errors.Is(err, core.ErrGasLimitReached) || errors.Is(err, execute.ErrBlobLimitReached) ||
		errors.Is(err, core.ErrNonceTooHigh) || errors.Is(err, core.ErrNonceTooLow)
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
