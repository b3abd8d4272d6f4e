package api

import (
	"errors"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/evm"
	"ashlar/evm/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// described describes the methods that networks of other families have, too, with examples of this
// network's data.
func (a *API) described() *eth.Description {
	return eth.Describe(eth.Examples{
		Address:        a.example(func(s *sample) any { return s.contract }),
		Block:          a.example(func(s *sample) any { return s.number() }),
		BlockHash:      a.example(func(s *sample) any { return s.block.Hash }),
		Transaction:    a.example(func(s *sample) any { return s.transaction }),
		Index:          a.example(func(s *sample) any { return hexutil.Uint64(s.index) }),
		RawTransaction: a.example(func(s *sample) any { return s.raw }),
		Filter:         a.example((*sample).filter),
		Watched:        a.example((*sample).watched),
		Call:           a.example(func(s *sample) any { return s.call }),
		CallBlock:      a.example(func(s *sample) any { return hexutil.Uint64(s.callBlock) }),
		Simulation: a.example(func(s *sample) any {
			return map[string]any{"blockStateCalls": []any{map[string]any{"calls": []any{s.call}}}}
		}),
	})
}

// errorsOf returns the errors that clients receive for some kinds of errors.
func errorsOf(kinds ...error) (documented []*jsonrpc.Error) {
	for _, kind := range kinds {
		var known *jsonrpc.Error
		if errors.As(translate(kind), &known) {
			documented = append(documented, known)
		}
	}
	return documented
}

// The errors of methods with a block parameter: namedBlockErrors if a missing block is
// answered with null, blockErrors if it is an error.
var (
	namedBlockErrors = errorsOf(query.ErrNoSafe, query.ErrNoFinalized, query.ErrNotCanonical)
	blockErrors      = append(errorsOf(query.ErrUnknownBlock, query.ErrUnknownHash, evm.ErrMissing), namedBlockErrors...)
	// existingErrors take the place of blockErrors in methods that find the block with [API.existing].
	existingErrors = append(errorsOf(noBlock(chain.BlockID{Number: 9}), noBlock(chain.BlockID{Hash: new(common.Hash)}), evm.ErrMissing), namedBlockErrors...)
)
