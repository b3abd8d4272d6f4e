package execute

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/holiman/uint256"
)

// simulatedRun is a simulated block while its calls run.
type simulatedRun struct {
	*blockSimulation
	header  *types.Header
	machine *vm.EVM
	logs    *simulatedLogs
	pool    *core.GasPool
	list    *bal.ConstructionBlockAccessList

	blobGas      uint64
	transactions types.Transactions
	senders      []common.Address
	receipts     types.Receipts
	calls        []SimulatedCall
}

// call runs a call as the block's next transaction.
func (r *simulatedRun) call(asked *Message) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	message, capped, err := r.message(asked)
	if err != nil {
		return err
	}
	tx := unsigned(r.executor.config.ChainID, asked.priced(r.header.BaseFee), message)
	index := len(r.transactions)
	r.logs.begin(tx.Hash(), index)
	r.state.SetTxContext(tx.Hash(), index, uint32(index+1))
	result, err := core.ApplyMessage(r.machine, message, r.pool)
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if r.memory.exceeded != nil {
		return errAborted
	}
	if err != nil {
		return &InvalidCallError{fmt.Errorf("err: %w (supplied gas %d)", err, message.GasLimit)}
	}
	var root []byte
	rules := r.machine.GetRules()
	if rules.IsByzantium {
		r.list.Merge(r.machine.StateDB.Finalise(rules))
	} else {
		root = r.state.IntermediateRoot(rules).Bytes()
	}
	receipt := core.MakeReceipt(r.machine, result, r.state, r.header.Number, common.Hash{}, r.header.Time, tx, r.pool.CumulativeUsed(), root)
	r.gas -= min(r.gas, result.UsedGas)
	r.blobGas += receipt.BlobGasUsed
	r.transactions, r.senders, r.receipts = append(r.transactions, tx), append(r.senders, message.From), append(r.receipts, receipt)
	done := SimulatedCall{Output: result.Return(), Logs: r.logs.taken(), GasUsed: result.UsedGas, MaxUsed: result.MaxUsedGas, Err: result.Err}
	switch {
	case errors.Is(result.Err, vm.ErrExecutionReverted):
		done.Err = &RevertError{Data: result.Revert()}
	case result.Err != nil && capped:
		done.Err = fmt.Errorf("%w (gas limit was capped by the RPC server's global gas cap)", result.Err)
	}
	r.calls = append(r.calls, done)
	return nil
}

// message fills in what a call leaves out: its sender's nonce, and all gas that the block
// has left. capped says that the simulation has not as much gas left as was asked for.
func (r *simulatedRun) message(m *Message) (message *core.Message, capped bool, err error) {
	left := r.left()
	wanted := left
	if m.Gas != nil {
		if wanted = *m.Gas; wanted > left { // before other faults, as in geth
			return nil, false, fmt.Errorf("%w: remaining: %d, required: %d", ErrSimulatedGas, left, wanted)
		}
	}
	if err := r.check(m); err != nil {
		return nil, false, err
	}
	message = &core.Message{
		From: m.From, To: m.To, Value: orZero(m.Value), Nonce: r.state.GetNonce(m.From), Data: m.Data, AccessList: m.AccessList,
		BlobGasFeeCap: m.MaxFeePerBlobGas, BlobHashes: m.BlobHashes, SetCodeAuthorizations: m.Authorizations,
	}
	if m.Nonce != nil {
		message.Nonce = *m.Nonce
	}
	if m.BlobHashes != nil {
		message.BlobGasFeeCap = orZero(m.MaxFeePerBlobGas)
	}
	message.GasLimit = min(wanted, r.gas)
	m.price(message, r.header.BaseFee)
	message.SkipEOACheck().SkipGasLimitCapCheck()
	if !r.options.Validate {
		message.SkipNonceCheck().SkipExecutionGasCapCheck()
	}
	return message, message.GasLimit < wanted, nil
}

// left is the gas that the block has left for a call.
func (r *simulatedRun) left() uint64 {
	amsterdam := r.executor.config.IsAmsterdam(r.header.Number, r.header.Time)
	left := r.pool.Available(amsterdam)
	if amsterdam && !r.options.Validate {
		left = min(left, r.header.GasLimit-r.pool.CumulativeExecution())
	}
	return left
}

// check rejects a message whose members contradict each other or the chain.
func (r *simulatedRun) check(m *Message) error {
	id := r.executor.config.ChainID
	switch {
	case m.GasPrice != nil && (m.MaxFeePerGas != nil || m.MaxPriorityFeePerGas != nil):
		return &CallError{errBothFees}
	case m.To == nil && m.BlobHashes != nil:
		return &CallError{core.ErrBlobTxCreate}
	case m.To == nil && m.Authorizations != nil:
		return &CallError{core.ErrSetCodeTxCreate}
	case m.ChainID != nil && id != nil && m.ChainID.CmpBig(id) != 0:
		return callErrorf("chainId does not match node's (have=%s, want=%v)", m.ChainID.Dec(), id)
	case r.header.BaseFee == nil && (m.MaxFeePerGas != nil || m.MaxPriorityFeePerGas != nil):
		return &CallError{errNotLondon}
	}
	return nil
}

// finish does what follows the calls, and makes the block.
func (r *simulatedRun) finish(withdrawals types.Withdrawals) (*SimulatedBlock, error) {
	config, header := r.executor.config, r.header
	header.GasUsed = r.pool.Used()
	if config.IsCancun(header.Number, header.Time) {
		header.BlobGasUsed = &r.blobGas
	}
	body := &types.Body{Transactions: r.transactions}
	if config.IsShanghai(header.Number, header.Time) {
		if body.Withdrawals = withdrawals; withdrawals == nil {
			body.Withdrawals = types.Withdrawals{}
		}
	}
	var logs []*types.Log
	for i := range r.calls {
		if r.calls[i].Err == nil {
			logs = append(logs, r.calls[i].Logs...)
		}
	}
	requests, list, err := core.PostExecution(r.ctx, config, header.Number, header.Time, logs, body.Withdrawals, r.machine, uint32(len(r.calls)+1))
	if err != nil {
		return nil, &CallError{err}
	}
	if requests != nil {
		hash := types.CalcRequestsHash(requests)
		header.RequestsHash = &hash
	}
	r.list.Merge(list)
	r.executor.engine.Finalize(r.chain, header, r.state, body)
	block := core.AssembleBlock(r.chain, header, r.state, body, r.receipts, r.list)
	hash := block.Hash()
	for i := range r.calls {
		for _, log := range r.calls[i].Logs {
			log.BlockHash = hash
		}
	}
	return &SimulatedBlock{Block: block, Senders: r.senders, Calls: r.calls}, nil
}

// placed is an override of a block's number and time too.
func placed(o BlockOverrides, number, time uint64) BlockOverrides {
	o.Number, o.Time = uint256.NewInt(number), &time
	return o
}

// simulatedChain is the chain with the blocks that were simulated on top.
type simulatedChain struct {
	*chainReader
	headers map[common.Hash]*types.Header
}

// add adds a header with its hash.
func (c *simulatedChain) add(hash common.Hash, header *types.Header) {
	if c.headers == nil {
		c.headers = make(map[common.Hash]*types.Header)
	}
	c.headers[hash] = header
}

// GetHeader implements core.ChainContext.
func (c *simulatedChain) GetHeader(hash common.Hash, number uint64) *types.Header {
	if header := c.headers[hash]; header != nil {
		return header
	}
	return c.chainReader.GetHeader(hash, number)
}
