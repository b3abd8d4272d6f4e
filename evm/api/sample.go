package api

import (
	"context"

	"ashlar/chain"
	"ashlar/evm/execute"
	"ashlar/evm/query"
	"ashlar/limit"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

const (
	// sampleBlocks is the number of newest blocks searched for example data.
	sampleBlocks = 128
	// maxSampleBytes is the maximum size of a transaction used as an example.
	maxSampleBytes = 2 << 10
)

// sample is example data from the network: a transaction of a recent block, preferably one
// that emitted a log.
type sample struct {
	block       chain.Ref
	encoded     hexutil.Bytes // the block
	transaction common.Hash
	index       uint64
	raw         hexutil.Bytes  // the transaction
	sender      common.Address // of the transaction
	contract    common.Address // emitted a log; else the recipient
	call        map[string]any // a message that succeeds
	callBlock   uint64         // after this block
}

func (s *sample) number() any { return hexutil.Uint64(s.block.Number) }

// filter returns a filter for the logs of the contract in the block.
func (s *sample) filter() any {
	return map[string]any{"fromBlock": s.number(), "toBlock": s.number(), "address": s.contract}
}

// frames returns a filter for the trace frames of the block that concern the contract.
func (s *sample) frames() any {
	return map[string]any{"fromBlock": s.number(), "toBlock": s.number(), "toAddress": []common.Address{s.contract}}
}

// watched returns a filter for logs of the contract in future blocks.
func (s *sample) watched() any { return map[string]any{"address": s.contract} }

// example returns an example function that picks a value from the network's sample.
func (a *API) example(pick func(*sample) any) func(context.Context) (any, error) {
	return a.samples.Example(a.findSample, pick)
}

// findSample searches the newest blocks, from the head down. Its caller holds a lock.
func (a *API) findSample(ctx context.Context) (*sample, error) {
	ctx = limit.Unyielding(ctx)
	view, err := a.chain.View()
	if err != nil {
		return nil, err
	}
	head := view.Head()
	best := &sample{block: head}
	for number, left := head.Number, sampleBlocks; left > 0; number, left = number-1, left-1 {
		found, hasLog, err := a.sampleOf(ctx, view, number)
		if err != nil {
			return nil, err
		}
		if found != nil && (hasLog || best.raw == nil) {
			best = found
		}
		if hasLog || number == 0 {
			break
		}
	}
	best.chooseCall(ctx, view)
	b, err := a.block(ctx, view, best.block.Number)
	if err != nil {
		return nil, err
	}
	defer b.release()
	best.encoded, err = b.rlp()
	return best, err
}

// sampleOf takes the sample from a block, or nil if the block has no transaction.
func (a *API) sampleOf(ctx context.Context, view *query.View, number uint64) (s *sample, hasLog bool, err error) {
	b, err := a.blockWithReceipts(ctx, view, number)
	if err != nil {
		return nil, false, err
	}
	defer b.release()
	for i := range b.body.Len() {
		receipt, err := b.receipts.Receipt(i)
		if err != nil {
			return nil, false, err
		}
		raw, err := b.body.Transaction(i)
		if err != nil {
			return nil, false, err
		}
		if len(raw) > maxSampleBytes || s != nil && receipt.LogCount == 0 {
			continue
		}
		tx, err := b.transaction(i)
		if err != nil {
			return nil, false, err
		}
		s = &sample{
			block: chain.Ref{Number: number, Hash: b.Hash}, index: uint64(i), raw: append(hexutil.Bytes(nil), raw...),
			transaction: common.BytesToHash(b.hasher.hash(raw)), sender: b.body.Sender(i), contract: common.BytesToAddress(tx.To),
		}
		if number > 0 && len(tx.To) > 0 && receipt.Succeeded {
			s.call = map[string]any{"from": s.sender, "to": s.contract, "data": hexutil.Encode(tx.Data)}
			s.callBlock = number - 1
		}
		if receipt.LogCount > 0 {
			logs := receipt.Logs()
			log, _, err := logs.Next()
			s.contract = log.Address
			return s, true, err
		}
	}
	return s, false, nil
}

// chooseCall uses the transaction's own message, or a transfer of nothing if that message
// fails without the transactions before it.
func (s *sample) chooseCall(ctx context.Context, view *query.View) {
	if s.call != nil {
		to, data := s.call["to"].(common.Address), hexutil.MustDecode(s.call["data"].(string))
		message := &execute.Message{From: s.sender, To: &to, Data: data}
		if _, err := view.EstimateGas(ctx, s.callBlock, message, execute.CallOptions{}); err == nil {
			return
		}
	}
	s.call, s.callBlock = map[string]any{"from": s.sender, "to": s.sender}, s.block.Number
}
