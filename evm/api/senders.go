package api

import (
	"context"

	"ashlar/eth"
	"ashlar/evm"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// senderMethods describes the method that finds a transaction without its hash. ots_getTransactionBySenderAndNonce
// is among the methods of Otterscan.
func (a *API) senderMethods() []jsonrpc.Method {
	return []jsonrpc.Method{{
		Name: "eth_getTransactionBySenderAndNonce", Summary: "Returns the transaction of a sender with a nonce, included or waiting.",
		Params: a.senderAndNonce(eth.Number, "0x0"), Result: eth.Result("Transaction information", schema.OrNull(transactionSchema)),
		Cost: jsonrpc.Heavy(50), Concerns: jsonrpc.NoContract, Handler: a.transactionBySender,
	}}
}

// senderAndNonce describes the parameters that identify a transaction by its sender.
func (a *API) senderAndNonce(nonce *schema.Schema, example any) []jsonrpc.Param {
	return []jsonrpc.Param{
		eth.Required("Sender", "The sender of the transaction.", eth.Address, a.example(func(s *sample) any { return s.sender })),
		eth.Required("Nonce", "The nonce of the transaction.", nonce, jsonrpc.Given(example)),
	}
}

// transactionBySender answers eth_getTransactionBySenderAndNonce. It looks in the pool before it takes the head:
// a transaction that has left the pool for a block is in the blocks then.
func (a *API) transactionBySender(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 2)
	sender, nonce := args.Address(0), parameter.Decode(&args, 1, parameter.ParseCount)
	if args.Err != nil {
		return out, args.Err
	}
	var waiting *types.Transaction
	if p := a.chain.Pool(); p != nil {
		waiting = p.Find(sender, nonce)
	}
	b, index, err := a.findSent(ctx, sender, nonce)
	switch {
	case err != nil:
		return out, err
	case b != nil:
		defer b.release()
		out, _, err = appendTransactionAt(out, b, uint64(index))
		return out, err
	case waiting == nil:
		return appendNull(out), nil
	}
	if a.chain.HeadIsRemote() {
		jsonrpc.Weaken(ctx, jsonrpc.Unverified)
	}
	return appendPooled(out, sender, waiting)
}

// hashBySender answers ots_getTransactionBySenderAndNonce.
func (a *API) hashBySender(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 2, 2)
	sender, nonce := args.Address(0), parameter.Decode(&args, 1, parameter.ParseCount)
	if args.Err != nil {
		return out, args.Err
	}
	b, index, err := a.findSent(ctx, sender, nonce)
	if b == nil || err != nil {
		return appendNull(out), err
	}
	defer b.release()
	raw, err := b.body.Transaction(index)
	return appendHex(out, b.hasher.hash(raw)), err
}

// findSent finds the transaction of a sender with a nonce in the chain and reads its block; nil if there is none. It
// finds the block after which the sender's nonce is higher by binary search, with one read of the account for each step.
func (a *API) findSent(ctx context.Context, sender common.Address, nonce uint64) (b *block, index int, err error) {
	view, err := a.chain.View()
	if err != nil {
		return nil, 0, err
	}
	// A nonce that the account has not reached is in no block, and needs no search.
	state := view.State(view.Head().Number)
	account, err := state.Account(ctx, evm.AccountKey(state, sender))
	if err != nil || account == nil || account.Nonce <= nonce {
		return nil, 0, err
	}
	number, found, err := firstBlock(ctx, view, sender, func(account *types.StateAccount) bool { return account.Nonce > nonce })
	if !found || err != nil {
		return nil, 0, err
	}
	return a.sentIn(ctx, view, number, sender, nonce)
}

// sentIn finds the transaction of a sender with a nonce in a block. There is none if the nonce is that of a
// contract, or was used up by a delegation.
func (a *API) sentIn(ctx context.Context, view *query.View, number uint64, sender common.Address, nonce uint64) (*block, int, error) {
	b, err := a.block(ctx, view, number)
	if err != nil {
		return nil, 0, err
	}
	for i := range b.body.Len() {
		tx, err := b.transaction(i)
		if err != nil {
			b.release()
			return nil, 0, err
		}
		if b.body.Sender(i) == sender && tx.Nonce == nonce {
			return b, i, nil
		}
	}
	b.release()
	return nil, 0, nil
}
