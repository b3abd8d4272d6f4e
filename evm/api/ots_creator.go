package api

import (
	"bytes"
	"context"

	"ashlar/evm"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/evm/trace"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// firstBlock returns the first block after which has is true of an account, by binary search
// over the blocks with state. From that block on has must stay true; found is false if it is
// not true after the head. If it may be a block before these, the error is a [*archive.Pruned].
func firstBlock(ctx context.Context, view *query.View, address common.Address, has func(*types.StateAccount) bool) (number uint64, found bool, err error) {
	first := view.Extent().State
	low, high := first, view.Head().Number+1
	for low < high {
		middle := low + (high-low)/2
		state := view.State(middle)
		account, err := state.Account(ctx, evm.AccountKey(state, address))
		if err != nil {
			return 0, false, err
		}
		if account != nil && has(account) {
			high = middle
		} else {
			low = middle + 1
		}
		if low > view.Head().Number {
			return 0, false, nil
		}
	}
	if low == first && first > 0 { // or earlier
		state := view.State(first - 1)
		_, err = state.Account(ctx, evm.AccountKey(state, address))
	}
	return low, true, err
}

// contractCreator answers ots_getContractCreator: null for an account without code, and for
// contracts of the genesis.
func (a *API) contractCreator(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	address := args.Address(0)
	if args.Err != nil {
		return out, args.Err
	}
	view, err := a.chain.View()
	if err != nil {
		return out, err
	}
	state := view.State(view.Head().Number)
	account, err := state.Account(ctx, evm.AccountKey(state, address))
	if err != nil || account == nil || bytes.Equal(account.CodeHash, types.EmptyCodeHash[:]) {
		return appendNull(out), err
	}
	if view.HasTraces() {
		return a.findCreator(ctx, view, address, out)
	}
	return a.scanForCreator(ctx, view, address, out)
}

// findCreator appends the creation of a contract that the trace index names.
func (a *API) findCreator(ctx context.Context, view *query.View, address common.Address, out []byte) ([]byte, error) {
	number, position, found, err := view.Creation(ctx, address)
	if !found || err != nil {
		return appendNull(out), err
	}
	list := frameList{out: out, room: jsonrpc.RoomFor(ctx, out)}
	err = a.framesAt(ctx, view, query.BlockTraces{Number: number, Positions: []uint32{position}}, &list, func(frame *trace.Frame) error {
		creator, _ := frame.Who()
		hash := frame.Transaction()
		out = appendHex(append(out, `{"hash":`...), hash[:])
		out = append(appendHex(append(out, `,"creator":`...), creator[:]), '}')
		return nil
	})
	return out, err
}

// scanForCreator appends the creation of a contract in a network without a trace index. It
// finds the block after which the account first has code, and traces its transactions.
func (a *API) scanForCreator(ctx context.Context, view *query.View, address common.Address, out []byte) ([]byte, error) {
	number, found, err := firstBlock(ctx, view, address, func(account *types.StateAccount) bool {
		return !bytes.Equal(account.CodeHash, types.EmptyCodeHash[:])
	})
	if !found || number == 0 || err != nil {
		return appendNull(out), err
	}
	answer := append([]byte(nil), "null"...)
	err = view.Replay(ctx, number, execute.ReplayOptions{}, func(r *execute.Replay) error {
		r.Expect(0, r.Block().Len())
		for i := range r.Block().Len() {
			tx, err := r.Block().Transaction(i)
			if err != nil {
				return err
			}
			root, err := a.otsFrames(ctx, r, i, out)
			if err != nil {
				return err
			}
			err = root.each(0, func(f *otsFrame, _ int) error {
				if f.To == address && f.Error == "" && (f.Type == "CREATE" || f.Type == "CREATE2") {
					hash := tx.Hash()
					answer = appendHex(append(answer[:0], `{"hash":`...), hash[:])
					answer = append(appendHex(append(answer, `,"creator":`...), f.From[:]), '}')
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return append(out, answer...), err
}
