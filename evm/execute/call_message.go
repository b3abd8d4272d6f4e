package execute

import (
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

var (
	errBothFees     = errors.New("both gasPrice and (maxFeePerGas or maxPriorityFeePerGas) specified")
	errNotLondon    = errors.New("maxFeePerGas and maxPriorityFeePerGas are not valid before London is active")
	errLoneBlobFee  = errors.New("maxFeePerBlobGas specified without blobVersionedHashes")
	errZeroBlobFee  = errors.New("maxFeePerBlobGas, if specified, must be non-zero")
	errZeroGasPrice = errors.New("gasPrice must be non-zero after london fork")
	errZeroMaxFee   = errors.New("maxFeePerGas must be non-zero")
	errPricedAuth   = errors.New("both gasPrice and authorizationList specified")
)

// message fills in what the sender left out, as far as a call needs it: no price
// and the default gas. A call is not signed, so its nonce, whether its sender can sign at all,
// and the gas limit of a transaction do not matter.
func (s *simulation) message(m *Message) (*core.Message, error) {
	if m.MaxFeePerBlobGas != nil && len(m.BlobHashes) == 0 {
		return nil, &CallError{errLoneBlobFee}
	}
	return s.tracedMessage(m)
}

// tracedMessage is message for a call that is traced. As in geth, it may have a fee for blobs without
// having blobs.
func (s *simulation) tracedMessage(m *Message) (*core.Message, error) {
	if err := s.check(m); err != nil {
		return nil, &CallError{err}
	}
	msg := &core.Message{
		From: m.From, To: m.To, Value: orZero(m.Value), GasLimit: min(defaultCallGas, s.gasCap), Data: m.Data,
		AccessList: m.AccessList, BlobGasFeeCap: m.MaxFeePerBlobGas, BlobHashes: m.BlobHashes,
		SetCodeAuthorizations: m.Authorizations,
	}
	if m.Gas != nil {
		msg.GasLimit = min(*m.Gas, s.gasCap)
	}
	if m.BlobHashes != nil {
		msg.BlobGasFeeCap = orZero(m.MaxFeePerBlobGas)
	}
	m.price(msg, s.block.BaseFee)
	return msg.SkipNonceCheck().SkipEOACheck().SkipGasLimitCapCheck(), nil
}

// check rejects a message whose members contradict each other or the chain.
func (s *simulation) check(m *Message) error {
	id := s.executor.config.ChainID
	switch {
	case m.GasPrice != nil && (m.MaxFeePerGas != nil || m.MaxPriorityFeePerGas != nil):
		return errBothFees
	case m.To == nil && m.BlobHashes != nil:
		return core.ErrBlobTxCreate
	case m.To == nil && m.Authorizations != nil:
		return core.ErrSetCodeTxCreate
	case m.ChainID != nil && id != nil && m.ChainID.CmpBig(id) != 0:
		return fmt.Errorf("chainId does not match node's (have=%s, want=%v)", m.ChainID.Dec(), id)
	case s.block.BaseFee == nil && (m.MaxFeePerGas != nil || m.MaxPriorityFeePerGas != nil):
		return errNotLondon
	}
	return nil
}

// effectivePrice is what the sender pays per gas: nothing where no fee is offered at all.
func effectivePrice(feeCap, tipCap *uint256.Int, baseFee *big.Int) *uint256.Int {
	price := new(uint256.Int)
	if feeCap.IsZero() && tipCap.IsZero() {
		return price
	}
	price.SetFromBig(baseFee)
	if price.Add(price, tipCap); price.Gt(feeCap) {
		price.Set(feeCap)
	}
	return price
}

// withFees fills in the fees of a message that names some, for [Executor.AccessList],
// which makes the list of a transaction that is going to be sent: a fee cap with
// room for the base fee to double. A tip that is not named is zero.
func (s *simulation) withFees(m *Message) (*Message, error) {
	if m.GasPrice == nil && m.MaxFeePerGas == nil && m.MaxPriorityFeePerGas == nil && m.MaxFeePerBlobGas == nil {
		return m, nil
	}
	switch {
	case m.MaxFeePerBlobGas != nil && m.MaxFeePerBlobGas.IsZero():
		return nil, &CallError{errZeroBlobFee}
	case m.GasPrice != nil && m.Authorizations != nil:
		return nil, &CallError{errPricedAuth}
	case m.GasPrice != nil && m.GasPrice.IsZero() && s.rules.IsLondon:
		return nil, &CallError{errZeroGasPrice}
	case m.priced(s.block.BaseFee):
		return m, nil
	}
	filled := *m
	filled.MaxPriorityFeePerGas = orZero(m.MaxPriorityFeePerGas)
	if m.MaxFeePerGas == nil {
		filled.MaxFeePerGas = new(uint256.Int)
		filled.MaxFeePerGas.SetFromBig(s.block.BaseFee)
		filled.MaxFeePerGas.Lsh(filled.MaxFeePerGas, 1)
		filled.MaxFeePerGas.Add(filled.MaxFeePerGas, filled.MaxPriorityFeePerGas)
	}
	switch {
	case filled.MaxFeePerGas.IsZero() && m.MaxPriorityFeePerGas != nil:
		return nil, &CallError{errZeroMaxFee}
	case filled.MaxFeePerGas.Lt(filled.MaxPriorityFeePerGas):
		return nil, callErrorf("maxFeePerGas (%s) < maxPriorityFeePerGas (%s)", filled.MaxFeePerGas.Hex(), filled.MaxPriorityFeePerGas.Hex())
	}
	return &filled, nil
}

// withList is the message with another access list.
func (m *Message) withList(list types.AccessList) *Message {
	changed := *m
	changed.AccessList = list
	return &changed
}

func orZero(n *uint256.Int) *uint256.Int {
	if n == nil {
		return new(uint256.Int)
	}
	return n
}

// priced reports whether the call has a gas price in place of fee caps: it names one, or its
// block has no base fee.
func (m *Message) priced(baseFee *big.Int) bool { return m.GasPrice != nil || baseFee == nil }

// price sets the gas price and the fee caps of the message that the call becomes.
func (m *Message) price(msg *core.Message, baseFee *big.Int) {
	if m.priced(baseFee) {
		msg.GasPrice = orZero(m.GasPrice)
		msg.GasFeeCap, msg.GasTipCap = msg.GasPrice, msg.GasPrice
		return
	}
	msg.GasFeeCap, msg.GasTipCap = orZero(m.MaxFeePerGas), orZero(m.MaxPriorityFeePerGas)
	msg.GasPrice = effectivePrice(msg.GasFeeCap, msg.GasTipCap, baseFee)
}

// unsigned is the transaction that a call would be, which is priced or not, see [Message.priced].
func unsigned(chainID *big.Int, priced bool, m *core.Message) *types.Transaction {
	id := new(uint256.Int)
	if chainID != nil {
		id.SetFromBig(chainID)
	}
	list := m.AccessList
	if list == nil {
		list = types.AccessList{}
	}
	switch {
	case priced && m.AccessList != nil:
		return types.NewTx(&types.AccessListTx{
			ChainID: id.ToBig(), Nonce: m.Nonce, GasPrice: m.GasPrice.ToBig(), Gas: m.GasLimit, To: m.To, Value: m.Value.ToBig(), Data: m.Data, AccessList: list,
		})
	case priced:
		return types.NewTx(&types.LegacyTx{Nonce: m.Nonce, GasPrice: m.GasPrice.ToBig(), Gas: m.GasLimit, To: m.To, Value: m.Value.ToBig(), Data: m.Data})
	case m.SetCodeAuthorizations != nil && m.To != nil:
		return types.NewTx(&types.SetCodeTx{
			ChainID: id, Nonce: m.Nonce, GasTipCap: m.GasTipCap, GasFeeCap: m.GasFeeCap, Gas: m.GasLimit, To: *m.To, Value: m.Value, Data: m.Data,
			AccessList: list, AuthList: m.SetCodeAuthorizations,
		})
	case m.BlobHashes != nil && m.To != nil:
		return types.NewTx(&types.BlobTx{
			ChainID: id, Nonce: m.Nonce, GasTipCap: m.GasTipCap, GasFeeCap: m.GasFeeCap, Gas: m.GasLimit, To: *m.To, Value: m.Value, Data: m.Data,
			AccessList: list, BlobFeeCap: orZero(m.BlobGasFeeCap), BlobHashes: m.BlobHashes,
		})
	}
	return types.NewTx(&types.DynamicFeeTx{
		ChainID: id.ToBig(), Nonce: m.Nonce, GasTipCap: m.GasTipCap.ToBig(), GasFeeCap: m.GasFeeCap.ToBig(), Gas: m.GasLimit, To: m.To, Value: m.Value.ToBig(), Data: m.Data,
		AccessList: list,
	})
}
