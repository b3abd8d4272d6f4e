package query

import (
	"context"

	"ashlar/evm"
	"ashlar/evm/execute"
	"ashlar/evm/proven"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// isRemote reports whether the state after a block is read from other nodes.
func (v *View) isRemote(number uint64) bool {
	return v.chain.remote != nil && !v.pending && !v.chain.archive.Stores(number)
}

// remoteState returns the state after a block, read from other nodes.
func (v *View) remoteState(number uint64) *proven.State {
	return v.chain.remote.StateAt(func(ctx context.Context) (*types.Header, error) {
		header, err := v.Header(ctx, number)
		if err != nil {
			return nil, err
		}
		return header.Header, nil
	})
}

// prefetchCalls has a remote state fetch what calls are going to read. It does nothing for a
// state that is stored. What cannot be fetched is fetched when it is read.
func prefetchCalls(ctx context.Context, state evm.State, messages ...*execute.Message) {
	remote, ok := state.(*proven.State)
	if !ok || len(messages) == 0 {
		return
	}
	calls := make([]proven.Call, len(messages))
	for i, m := range messages {
		calls[i] = proven.Call{
			From: m.From, To: m.To, Gas: m.Gas, GasPrice: m.GasPrice, MaxFeePerGas: m.MaxFeePerGas, MaxPriorityFeePerGas: m.MaxPriorityFeePerGas,
			Value: m.Value, Data: m.Data, AccessList: m.AccessList, Authorizations: m.Authorizations,
		}
	}
	remote.PrefetchCalls(ctx, calls)
}

// prefetchProof has a remote state fetch the nodes of a proof.
func prefetchProof(ctx context.Context, state evm.State, address common.Address, slots []common.Hash) error {
	remote, ok := state.(*proven.State)
	if !ok {
		return nil
	}
	return remote.Prefetch(ctx, []proven.Want{{Address: address, Slots: slots}})
}

// prefetchBlock has a remote state fetch what the block after it reads.
func prefetchBlock(ctx context.Context, state evm.State, block *types.Block) {
	if remote, ok := state.(*proven.State); ok {
		remote.PrefetchBlock(ctx, block)
	}
}
