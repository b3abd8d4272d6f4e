// Package sample collects blocks, transactions, accounts, contracts, topics and slots that occur in
// a chain. The differential test and the benchmark generate requests from them.
//
// Samples are in the order of the chain, so the same chain yields the same sample and, with the
// same seed, the same requests.
package sample

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"ashlar/internal/node"
)

// Chain is the sample of a chain.
type Chain struct {
	Blocks   []Block // by number, the genesis block first
	Txs      []Tx
	Accounts []common.Address // senders, receivers and fee recipients

	// Set by Learn:
	Emitters []common.Address // contracts that emitted logs, busiest first
	Topics   [4][]common.Hash // by position
	Slots    []Slot
	Reverted []int // indexes in Txs
}

// Block describes a block.
type Block struct {
	Hash        common.Hash
	GasLimit    uint64
	Txs         int
	Header      *types.Header
	Withdrawals types.Withdrawals
}

// Tx is a transaction with its position.
type Tx struct {
	*types.Transaction
	From  common.Address
	Block uint64
	Index uint64
}

// Slot is a storage slot accessed by a transaction.
type Slot struct {
	Address common.Address
	Key     common.Hash
}

// Head returns the number of the last block.
func (c *Chain) Head() uint64 { return uint64(len(c.Blocks) - 1) }

// Read reads a genesis file and an RLP export.
func Read(genesisFile, chainFile string) (*Chain, error) {
	raw, err := os.ReadFile(genesisFile)
	if err != nil {
		return nil, err
	}
	var genesis core.Genesis
	if err := json.Unmarshal(raw, &genesis); err != nil {
		return nil, fmt.Errorf("%s: %w", genesisFile, err)
	}
	first := genesis.ToBlock()
	c := &Chain{Blocks: []Block{{first.Hash(), first.GasLimit(), 0, first.Header(), first.Withdrawals()}}}
	file, err := os.Open(chainFile)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	accounts := ordered[common.Address]{}
	signer := types.LatestSigner(genesis.Config)
	stream := rlp.NewStream(bufio.NewReaderSize(file, 1<<20), 0)
	for {
		var b types.Block
		if err := stream.Decode(&b); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", chainFile, err)
		}
		if b.NumberU64() == 0 {
			continue // some exports begin with the genesis block
		}
		if err := c.add(&b, signer, &accounts); err != nil {
			return nil, fmt.Errorf("%s, block %d: %w", chainFile, b.NumberU64(), err)
		}
	}
	c.Accounts = accounts.list
	if len(c.Txs) == 0 {
		return nil, fmt.Errorf("%s contains no transactions", chainFile)
	}
	return c, nil
}

func (c *Chain) add(b *types.Block, signer types.Signer, accounts *ordered[common.Address]) error {
	if b.NumberU64() != uint64(len(c.Blocks)) {
		return fmt.Errorf("want block %d", len(c.Blocks))
	}
	c.Blocks = append(c.Blocks, Block{b.Hash(), b.GasLimit(), len(b.Transactions()), b.Header(), b.Withdrawals()})
	accounts.add(b.Coinbase())
	for i, tx := range b.Transactions() {
		from, err := types.Sender(signer, tx)
		if err != nil {
			return err
		}
		accounts.add(from)
		if tx.To() != nil {
			accounts.add(*tx.To())
		}
		c.Txs = append(c.Txs, Tx{tx, from, b.NumberU64(), uint64(i)})
	}
	return nil
}

const (
	// learnBlocks is the number of blocks, evenly spread, whose receipts are read.
	learnBlocks = 600
	// learnTxs is the number of transactions, evenly spread, whose accesses are determined.
	learnTxs = 1000
)

// Learn reads logs and accessed slots from an endpoint that has the chain.
func (c *Chain) Learn(ctx context.Context, client *node.Client) error {
	if err := c.learnLogs(ctx, client); err != nil {
		return err
	}
	slots := ordered[Slot]{}
	for i := 0; i < len(c.Txs); i += max(1, len(c.Txs)/learnTxs) {
		tx := c.Txs[i]
		if tx.To() == nil || len(tx.Data()) == 0 {
			continue
		}
		var touched struct {
			AccessList types.AccessList `json:"accessList"`
		}
		call := map[string]any{"from": tx.From, "to": tx.To(), "input": hexutil.Bytes(tx.Data()), "value": (*hexutil.Big)(tx.Value())}
		err := client.Call(ctx, &touched, "eth_createAccessList", call, hexutil.Uint64(tx.Block-1))
		var refused *node.Error
		if errors.As(err, &refused) {
			continue // it depends on earlier transactions of its block
		} else if err != nil {
			return err
		}
		for _, t := range touched.AccessList {
			for _, key := range t.StorageKeys {
				slots.add(Slot{t.Address, key})
			}
		}
	}
	c.Slots = slots.list
	slices.SortStableFunc(c.Slots, func(a, b Slot) int { // the order in answers is undefined
		return slices.Compare(append(a.Address[:], a.Key[:]...), append(b.Address[:], b.Key[:]...))
	})
	if len(c.Emitters) == 0 || len(c.Slots) == 0 {
		return fmt.Errorf("the chain has no logs or accesses no slots, so no requests for them can be made")
	}
	return nil
}

func (c *Chain) learnLogs(ctx context.Context, client *node.Client) error {
	logs := map[common.Address]int{}
	emitters, topics := ordered[common.Address]{}, [4]ordered[common.Hash]{}
	first := map[uint64]int{} // index of the first transaction, by block
	for i := len(c.Txs) - 1; i >= 0; i-- {
		first[c.Txs[i].Block] = i
	}
	for n := uint64(1); n <= c.Head(); n += max(1, c.Head()/learnBlocks) {
		var receipts []*types.Receipt
		if err := client.Call(ctx, &receipts, "eth_getBlockReceipts", hexutil.Uint64(n)); err != nil {
			return err
		}
		for i, r := range receipts {
			if r.Status == types.ReceiptStatusFailed {
				c.Reverted = append(c.Reverted, first[n]+i)
			}
			for _, l := range r.Logs {
				emitters.add(l.Address)
				logs[l.Address]++
				for at, topic := range l.Topics {
					topics[at].add(topic)
				}
			}
		}
	}
	c.Emitters = emitters.list
	slices.SortStableFunc(c.Emitters, func(a, b common.Address) int { return logs[b] - logs[a] })
	for at := range topics {
		c.Topics[at] = topics[at].list
	}
	return nil
}

// ordered is a set that keeps the order of insertion.
type ordered[T comparable] struct {
	has  map[T]bool
	list []T
}

func (o *ordered[T]) add(v T) {
	if o.has == nil {
		o.has = map[T]bool{}
	}
	if !o.has[v] {
		o.has[v] = true
		o.list = append(o.list, v)
	}
}
