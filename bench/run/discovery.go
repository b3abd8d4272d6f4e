package main

import (
	"context"
	"encoding/json"
	"errors"
	"sort"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"ashlar/internal/node"
	"ashlar/internal/sample"
)

// discovery holds what requests need to know about a chain beyond the samples. It comes from
// a server that has the chain.
type discovery struct {
	full   []blockRange     // with nearly as many logs of the busiest contract as one answer may have
	tokens []common.Address // contracts with balances, the busiest first
}

// maxTokens is how many tokens are asked for balances.
const maxTokens = 20

func discover(ctx context.Context, client *node.Client, chain *sample.Chain) (*discovery, error) {
	full, err := fullRanges(ctx, client, chain.Emitters[0], chain.Head())
	if err != nil {
		return nil, err
	}
	tokens, err := findTokens(ctx, client, chain)
	return &discovery{full, tokens}, err
}

// fullRanges returns ranges of blocks, spread over the chain, with nearly as many logs of
// an address as one answer may have.
func fullRanges(ctx context.Context, client *node.Client, address common.Address, head uint64) (all []blockRange, err error) {
	const ranges, most = 10, 10_000
	for i := range uint64(ranges) {
		from := 1 + i*head/ranges
		length := sort.Search(int(head-from+1), func(length int) bool {
			if err != nil {
				return true
			}
			var logs []json.RawMessage
			failed := client.Call(ctx, &logs, "eth_getLogs", blockRange{from, from + uint64(length)}.of(object{"address": address}))
			var refused *node.Error
			if failed != nil && !errors.As(failed, &refused) {
				err = failed
			}
			return failed != nil || len(logs) > most
		})
		if err != nil {
			return nil, err
		}
		if length > 0 {
			all = append(all, blockRange{from, from + uint64(length) - 1})
		}
	}
	return all, nil
}

// findTokens returns the tokens among the contracts that write logs. Others, such as pools,
// would only revert when asked for balances.
func findTokens(ctx context.Context, client *node.Client, chain *sample.Chain) (tokens []common.Address, err error) {
	for _, contract := range chain.Emitters {
		if len(tokens) == maxTokens {
			break
		}
		var answer hexutil.Bytes
		err := client.Call(ctx, &answer, "eth_call", object{"to": contract, "data": sample.BalanceOf(chain.Accounts[0])}, "latest")
		var refused *node.Error
		if err != nil && !errors.As(err, &refused) {
			return nil, err
		}
		if err == nil && len(answer) == common.HashLength {
			tokens = append(tokens, contract)
		}
	}
	if len(tokens) == 0 {
		return nil, errors.New("the chain has no token that answers balanceOf")
	}
	return tokens, nil
}
