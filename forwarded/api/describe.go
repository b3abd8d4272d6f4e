package api

import (
	"context"

	"ashlar/eth"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// described describes the methods that networks of other families have, too, with examples of this
// network's data.
func (a *API) described() *eth.Description {
	call := func(s *sample) any { return map[string]any{"to": s.address} }
	return eth.Describe(eth.Examples{
		Address:        a.example(func(s *sample) any { return s.address }),
		Block:          a.example(func(s *sample) any { return s.number() }),
		BlockHash:      a.example(func(s *sample) any { return s.hash }),
		Transaction:    a.example(func(s *sample) any { return s.transaction }),
		Index:          jsonrpc.Given("0x0"),
		RawTransaction: jsonrpc.Given("0x"),
		Filter:         a.example((*sample).filter),
		Watched:        jsonrpc.Given(map[string]any{}),
		Call:           a.example(call),
		CallBlock:      jsonrpc.Given("latest"),
		Simulation: a.example(func(s *sample) any {
			return map[string]any{"blockStateCalls": []any{map[string]any{"calls": []any{call(s)}}}}
		}),
	})
}

// nodesResult is whatever the chain's nodes return: chains add members of their own to blocks, transactions
// and receipts. Nodes are expected to follow the specification in single values.
var nodesResult = schema.Any

// sample is example data from the network.
type sample struct {
	block       uint64
	hash        common.Hash
	transaction common.Hash    // zero if the newest blocks have none
	address     common.Address // sender of a block's transactions, or its beneficiary
}

func (s *sample) number() any { return hexutil.Uint64(s.block) }

func (s *sample) filter() any {
	return map[string]any{"fromBlock": s.number(), "toBlock": s.number()}
}

// example returns an example function that picks a value from the network's sample.
func (a *API) example(pick func(*sample) any) func(context.Context) (any, error) {
	return a.samples.Example(a.findSample, pick)
}

// findSample takes the newest block with a transaction, of those that are at hand.
func (a *API) findSample(ctx context.Context) (*sample, error) {
	view, err := a.chain.View(ctx)
	if err != nil {
		return nil, err
	}
	s := new(sample)
	for _, b := range view.Blocks() {
		contents, err := query.Contents(b)
		if err != nil {
			return nil, err
		}
		if len(contents.Transactions) > 0 || s.transaction == (common.Hash{}) {
			s.block, s.hash, s.address = b.Number, b.Hash, contents.Miner
			if len(contents.Transactions) > 0 {
				s.transaction = contents.Transactions[0]
			}
		}
	}
	return s, nil
}
