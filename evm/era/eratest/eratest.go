// Package eratest makes chains for tests of history files.
package eratest

import (
	"bytes"
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// Chain is a chain of blocks with their receipts, the first of which has a number. It
// implements the source of blocks that history files are written of.
type Chain struct {
	First   uint64
	Blocks  []*types.Block
	Results []types.Receipts // by block
	Totals  []*big.Int       // total difficulties
}

// New makes a chain of so many blocks from a number on: linked, with signed
// transactions of two types, receipts with logs, an uncle now and then, and roots that
// fit. The merge comes after so many of them; later blocks have withdrawals.
func New(tb testing.TB, first uint64, count, beforeMerge int) *Chain {
	tb.Helper()
	key, err := crypto.ToECDSA(common.BigToHash(big.NewInt(7)).Bytes())
	if err != nil {
		tb.Fatal(err)
	}
	c := &Chain{First: first}
	signer := types.NewLondonSigner(big.NewInt(1337))
	to := common.Address{1, 2, 3}
	total, parent := new(big.Int), common.Hash{}
	if first > 0 {
		total.SetUint64(1_000_000)
	}
	for i := range count {
		number := first + uint64(i)
		var body types.Body
		if number > 0 {
			body.Transactions = types.Transactions{
				types.MustSignNewTx(key, signer, &types.LegacyTx{Nonce: 2 * number, To: &to, Value: big.NewInt(1), Gas: 21000, GasPrice: big.NewInt(10)}),
				types.MustSignNewTx(key, signer, &types.DynamicFeeTx{ChainID: big.NewInt(1337), Nonce: 2*number + 1, Gas: 90000,
					GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(20), Value: new(big.Int), Data: bytes.Repeat([]byte{byte(i)}, 100)}),
			}
		}
		header := &types.Header{
			ParentHash: parent, Number: new(big.Int).SetUint64(number), Difficulty: new(big.Int),
			GasLimit: 8_000_000, Time: 12 * number, Extra: []byte("made by a test"),
		}
		if i < beforeMerge {
			header.Difficulty.SetInt64(100 + int64(i))
			if i == 2 {
				body.Uncles = []*types.Header{{Number: new(big.Int).SetUint64(number - 1), Difficulty: big.NewInt(5)}}
			}
		} else {
			body.Withdrawals = types.Withdrawals{{Index: number, Validator: 1, Address: to, Amount: 5}}
		}
		receipts := makeReceipts(&body, i)
		block := types.NewBlock(header, &body, receipts, trie.NewStackTrie(nil))
		total = new(big.Int).Add(total, block.Difficulty())
		c.Blocks, c.Results, c.Totals = append(c.Blocks, block), append(c.Results, receipts), append(c.Totals, total)
		parent = block.Hash()
	}
	return c
}

// makeReceipts makes receipts of three kinds: with a state root, failed, and with logs.
func makeReceipts(body *types.Body, i int) types.Receipts {
	receipts := make(types.Receipts, len(body.Transactions))
	for j, tx := range body.Transactions {
		r := &types.Receipt{Type: tx.Type(), Status: uint64(j), CumulativeGasUsed: uint64(21000 * (j + 1))}
		if i == 1 && j == 0 {
			r.PostState = bytes.Repeat([]byte{9}, common.HashLength)
		}
		for range j * i % 3 {
			r.Logs = append(r.Logs, &types.Log{Address: common.Address{byte(i)}, Topics: []common.Hash{{1}, {2}}, Data: []byte{3, 4, 5}})
		}
		r.Bloom = types.CreateBloom(r)
		receipts[j] = r
	}
	return receipts
}

// Header implements the source.
func (c *Chain) Header(_ context.Context, number uint64) ([]byte, *big.Int, error) {
	encoded, err := rlp.EncodeToBytes(c.Blocks[number-c.First].Header())
	return encoded, c.Totals[number-c.First], err
}

// Body implements the source.
func (c *Chain) Body(_ context.Context, number uint64) ([]byte, error) {
	return rlp.EncodeToBytes(c.Blocks[number-c.First].Body())
}

// Receipts implements the source: they are copies, without blooms.
func (c *Chain) Receipts(_ context.Context, number uint64) (types.Receipts, error) {
	results := c.Results[number-c.First]
	receipts := make(types.Receipts, len(results))
	for i, r := range results {
		own := *r
		own.Bloom = types.Bloom{}
		receipts[i] = &own
	}
	return receipts, nil
}
