package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"ashlar/eth"
	"ashlar/evm"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

// fillMethods describes the method that completes a transaction.
func (a *API) fillMethods(d *eth.Description) []jsonrpc.Method {
	return []jsonrpc.Method{{
		Name: "eth_fillTransaction", Summary: "Returns a transaction to be signed, with the nonce, gas and fees that were left out.",
		Params: []jsonrpc.Param{d.Call},
		Result: eth.Result("Transaction", schema.Object(schema.Members{"raw": eth.Data, "tx": schema.Object(nil, nil)}, nil)),
		Cost:   jsonrpc.Heavy(70), Concerns: parameter.Concerning(contractsCalled), Handler: a.fillTransaction,
	}}
}

// fillTransaction answers eth_fillTransaction.
func (a *API) fillTransaction(ctx context.Context, params, out []byte) ([]byte, error) {
	args := parameter.Read(params, 1, 1)
	message := parameter.Decode(&args, 0, parseMessage)
	unfillable := parameter.Decode(&args, 0, unfillable)
	if args.Err != nil {
		return out, args.Err
	}
	if unfillable != nil {
		return out, callError(ctx, unfillable, out)
	}
	view, err := a.chain.View()
	if err != nil {
		return out, err
	}
	if err := a.fill(ctx, view, message); err != nil {
		return out, callError(ctx, err, out)
	}
	tx := unsigned(message)
	raw, err := tx.MarshalBinary()
	if err != nil {
		return out, err
	}
	encoded, err := json.Marshal(tx)
	if err != nil {
		return out, err
	}
	out = appendHex(append(out, `{"raw":`...), raw)
	return append(append(append(out, `,"tx":`...), encoded...), '}'), nil
}

// unfillable returns why a call object cannot become a transaction, nil if it can: its data and its input
// contradict each other, or it has blobs, which the transaction would lose.
func unfillable(raw []byte) (why, err error) {
	var data, input *[]byte
	var blobs bool
	err = parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("data"):
			return jsonrpc.SetOptional(&data, value, parameter.ParseBytes)
		case name.Is("input"):
			return jsonrpc.SetOptional(&input, value, parameter.ParseBytes)
		case name.Is("blobs"):
			blobs = !jsonrpc.IsNull(value)
		}
		return nil
	})
	switch {
	case blobs:
		why = refused(`"blobs" cannot be filled in: expected blobVersionedHashes`)
	case data != nil && input != nil && !bytes.Equal(*data, *input):
		why = refused(`both "data" and "input" are set and not equal. Please use "input" to pass transaction call data`)
	}
	return why, err
}

// refused is an error for the client about a transaction that cannot be filled in.
func refused(format string, args ...any) error {
	return &execute.CallError{Err: fmt.Errorf(format, args...)}
}

// fill fills in what a message left out, at the head.
func (a *API) fill(ctx context.Context, view *query.View, m *execute.Message) error {
	head, err := view.Header(ctx, view.Head().Number)
	if err != nil {
		return err
	}
	config := a.chain.Executor().Config()
	if err := a.fillFees(ctx, view, head.Header, m); err != nil {
		return err
	}
	if m.Value == nil {
		m.Value = new(uint256.Int)
	}
	if m.Nonce == nil {
		nonce, err := a.nextNonce(ctx, view, m.From)
		if err != nil {
			return err
		}
		m.Nonce = &nonce
	}
	switch {
	case m.BlobHashes != nil && len(m.BlobHashes) == 0:
		return refused("need at least 1 blob for a blob transaction")
	case len(m.BlobHashes) > params.BlobTxMaxBlobs:
		return refused("too many blobs in transaction (have=%d, max=%d)", len(m.BlobHashes), params.BlobTxMaxBlobs)
	case m.To == nil && m.BlobHashes != nil:
		return refused(`missing "to" in blob transaction`)
	case m.To == nil && len(m.Data) == 0:
		return refused("contract creation without any data provided")
	case m.To == nil && m.Authorizations != nil:
		return refused(`authorizationList provided for contract creation, but "to" field is missing`)
	case m.BlobHashes != nil && m.GasPrice == nil && m.MaxFeePerBlobGas == nil:
		return refused("blob transactions are not valid before Cancun is active")
	}
	if m.Gas == nil {
		estimated := *m
		estimated.Nonce, estimated.ChainID = nil, nil
		if m.BlobHashes == nil {
			estimated.MaxFeePerBlobGas = nil // calls refuse it, but to fill a transaction it does no harm
		}
		gas, err := view.EstimateGas(ctx, view.Head().Number, &estimated, execute.CallOptions{})
		if err != nil {
			return err
		}
		m.Gas = &gas
	}
	if m.ChainID != nil && m.ChainID.CmpBig(config.ChainID) != 0 {
		return refused("chainId does not match node's (have=%v, want=%v)", m.ChainID.Dec(), config.ChainID)
	}
	m.ChainID = uint256.MustFromBig(config.ChainID)
	return nil
}

// nextNonce is the nonce of the next transaction of a sender, after those that wait.
func (a *API) nextNonce(ctx context.Context, view *query.View, from common.Address) (uint64, error) {
	if waiting, err := a.chain.AwaitPool(ctx); err != nil {
		return 0, err
	} else if waiting != nil {
		return waiting.Nonce(ctx, from)
	}
	state := view.State(view.Head().Number)
	account, err := state.Account(ctx, evm.AccountKey(state, from))
	if account == nil || err != nil {
		return 0, err
	}
	return account.Nonce, nil
}

// fillFees fills in the fees: the suggested tip, and twice the base fee of the head.
func (a *API) fillFees(ctx context.Context, view *query.View, head *types.Header, m *execute.Message) error {
	config := a.chain.Executor().Config()
	london := config.IsLondon(head.Number)
	if m.MaxFeePerBlobGas != nil && m.MaxFeePerBlobGas.IsZero() {
		return refused("maxFeePerBlobGas, if specified, must be non-zero")
	}
	if m.BlobHashes != nil && m.MaxFeePerBlobGas == nil && config.IsCancun(head.Number, head.Time) {
		m.MaxFeePerBlobGas = twice(eip4844.CalcBlobFee(config, head))
	}
	switch {
	case m.GasPrice != nil && (m.MaxFeePerGas != nil || m.MaxPriorityFeePerGas != nil):
		return refused("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
	case m.GasPrice != nil && m.Authorizations != nil:
		return refused("both gasPrice and authorizationList specified")
	case m.GasPrice != nil && m.GasPrice.IsZero() && london:
		return refused("gasPrice must be non-zero after london fork")
	case m.GasPrice != nil:
		return nil
	case !london && (m.MaxFeePerGas != nil || m.MaxPriorityFeePerGas != nil):
		return refused("maxFeePerGas and maxPriorityFeePerGas are not valid before London is active")
	case m.MaxFeePerGas != nil && m.MaxPriorityFeePerGas != nil && m.MaxFeePerGas.IsZero():
		return refused("maxFeePerGas must be non-zero")
	}
	if m.MaxPriorityFeePerGas == nil {
		suggested, err := a.tips.Suggest(ctx, view)
		if err != nil {
			return err
		}
		tip, overflow := uint256.FromBig(suggested)
		if overflow {
			return errors.New("suggested tip is too large")
		}
		if !london {
			m.GasPrice = tip
			return nil
		}
		m.MaxPriorityFeePerGas = tip
	}
	if m.MaxFeePerGas == nil {
		m.MaxFeePerGas = new(uint256.Int).Add(m.MaxPriorityFeePerGas, twice(head.BaseFee))
	}
	if m.MaxFeePerGas.Lt(m.MaxPriorityFeePerGas) {
		return refused("maxFeePerGas (%v) < maxPriorityFeePerGas (%v)", m.MaxFeePerGas.Hex(), m.MaxPriorityFeePerGas.Hex())
	}
	return nil
}

// twice leaves room for a fee that rises.
func twice(fee *big.Int) *uint256.Int {
	value, _ := uint256.FromBig(new(big.Int).Lsh(fee, 1))
	return value
}

// unsigned returns a filled-in message as a transaction.
func unsigned(m *execute.Message) *types.Transaction {
	switch {
	case m.Authorizations != nil && m.GasPrice == nil:
		return types.NewTx(&types.SetCodeTx{
			ChainID: m.ChainID, Nonce: *m.Nonce, GasTipCap: m.MaxPriorityFeePerGas, GasFeeCap: m.MaxFeePerGas, Gas: *m.Gas,
			To: *m.To, Value: m.Value, Data: m.Data, AccessList: m.AccessList, AuthList: m.Authorizations,
		})
	case m.BlobHashes != nil && m.GasPrice == nil:
		return types.NewTx(&types.BlobTx{
			ChainID: m.ChainID, Nonce: *m.Nonce, GasTipCap: m.MaxPriorityFeePerGas, GasFeeCap: m.MaxFeePerGas, Gas: *m.Gas,
			To: *m.To, Value: m.Value, Data: m.Data, AccessList: m.AccessList, BlobFeeCap: m.MaxFeePerBlobGas, BlobHashes: m.BlobHashes,
		})
	case m.GasPrice == nil:
		return types.NewTx(&types.DynamicFeeTx{
			ChainID: m.ChainID.ToBig(), Nonce: *m.Nonce, GasTipCap: m.MaxPriorityFeePerGas.ToBig(), GasFeeCap: m.MaxFeePerGas.ToBig(), Gas: *m.Gas,
			To: m.To, Value: m.Value.ToBig(), Data: m.Data, AccessList: m.AccessList,
		})
	case m.AccessList != nil:
		return types.NewTx(&types.AccessListTx{
			ChainID: m.ChainID.ToBig(), Nonce: *m.Nonce, GasPrice: m.GasPrice.ToBig(), Gas: *m.Gas,
			To: m.To, Value: m.Value.ToBig(), Data: m.Data, AccessList: m.AccessList,
		})
	}
	return types.NewTx(&types.LegacyTx{Nonce: *m.Nonce, GasPrice: m.GasPrice.ToBig(), Gas: *m.Gas, To: m.To, Value: m.Value.ToBig(), Data: m.Data})
}
