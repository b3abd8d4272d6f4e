package verify

import (
	"bytes"
	"context"
	"fmt"
	"math/big"

	"ashlar/archive"
	"ashlar/archive/postings"
	"ashlar/chain/evm"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// blockCheck checks the rows of one block after the other. It belongs to one goroutine.
type blockCheck struct {
	*checker
	ledger *ledger
	hasher types.ListHasher

	number uint64 // of the block under check
	row    []byte // used again
}

// of is a finding about one of the three rows of the block.
func (c *blockCheck) of(t *kv.Table, what string, wanted, got any) error {
	f := c.atBlock(t, c.number)
	f.Expected, f.Got = fmt.Sprintf("%s %v", what, wanted), fmt.Sprint(got)
	return f
}

// check checks a block, and enters the rows that it must have.
func (c *blockCheck) check(ctx context.Context, number uint64) error {
	c.number = number
	header, err := c.header(ctx, number)
	if err != nil {
		return err
	}
	difficulty, err := c.checkHeader(ctx, header)
	if err != nil {
		return err
	}
	block, senders, err := c.checkBody(ctx, header)
	if err != nil {
		return err
	}
	receipts, err := c.checkReceipts(ctx, block)
	if err != nil {
		return err
	}
	if c.ledger.sift == nil {
		c.transactions.Add(uint64(len(senders)))
	}
	return c.checkRows(ctx, &evm.Delta{Block: block, Senders: senders, Receipts: receipts}, difficulty)
}

// checkHeader checks a header and its place in the chain, and returns the total difficulty.
func (c *blockCheck) checkHeader(ctx context.Context, header *archive.Header) (*big.Int, error) {
	headers := c.tables.headers
	hash := crypto.Keccak256Hash(header.RLP)
	switch {
	case !header.Number.IsUint64() || header.Number.Uint64() != c.number:
		return nil, c.of(headers, "the header of block", c.number, fmt.Sprintf("that of block %v", header.Number))
	case hash != header.Hash:
		return nil, c.of(headers, "the hash of the header,", hash, header.Hash)
	case c.number == c.settled.Number && hash != c.settled.Hash:
		return nil, c.of(headers, "the hash that the settled pointer names,", c.settled.Hash, hash)
	}
	if c.number == c.to && c.to < c.settled.Number {
		child, err := c.header(ctx, c.number+1)
		if err != nil {
			return nil, err
		}
		if child.ParentHash != hash {
			return nil, c.of(headers, fmt.Sprintf("the parent hash of block %d,", c.number+1), child.ParentHash, hash)
		}
	}
	difficulty := new(big.Int).Set(header.Difficulty)
	if c.number == 0 {
		return difficulty, c.checkGenesis(header)
	}
	parent, err := c.header(ctx, c.number-1)
	if err != nil {
		return nil, err
	}
	if header.ParentHash != parent.Hash {
		return nil, c.of(headers, fmt.Sprintf("the hash of block %d as parent hash,", c.number-1), parent.Hash, header.ParentHash)
	}
	difficulty.Add(difficulty, parent.TotalDifficulty)
	if header.TotalDifficulty.Cmp(difficulty) != 0 {
		return nil, c.of(headers, "the total difficulty", difficulty, header.TotalDifficulty)
	}
	return difficulty, nil
}

// checkGenesis compares block 0 with the genesis that the archive names, which
// does not say what the state is.
func (c *blockCheck) checkGenesis(header *archive.Header) error {
	named := c.archive.Genesis().ToBlock().Header()
	named.Root = header.Root
	if hash := named.Hash(); hash != header.Hash {
		return c.of(c.tables.headers, "the genesis that the pointer genesis describes, with the hash", hash, header.Hash)
	}
	return nil
}

// checkBody compares a body with its header, and recovers the senders.
func (c *blockCheck) checkBody(ctx context.Context, header *archive.Header) (*types.Block, []common.Address, error) {
	bodies := c.tables.bodies
	body, err := c.archive.Body(ctx, c.number, nil)
	if err != nil {
		return nil, nil, c.unreadable(ctx, bodies, err)
	}
	block, err := body.Block(header.Header)
	if err != nil {
		return nil, nil, c.unreadable(ctx, bodies, err)
	}
	if root := types.DeriveSha(block.Transactions(), c.hasher); root != header.TxHash {
		return nil, nil, c.of(bodies, "transactions with the root", header.TxHash, root)
	}
	if hash := types.CalcUncleHash(block.Uncles()); hash != header.UncleHash {
		return nil, nil, c.of(bodies, "uncles with the hash", header.UncleHash, hash)
	}
	switch want := header.WithdrawalsHash; {
	case (want == nil) != (block.Withdrawals() == nil):
		return nil, nil, c.of(bodies, "withdrawals:", want != nil, block.Withdrawals() != nil)
	case want != nil:
		if root := types.DeriveSha(block.Withdrawals(), c.hasher); root != *want {
			return nil, nil, c.of(bodies, "withdrawals with the root", *want, root)
		}
	}
	if block.Size() != header.Size {
		return nil, nil, c.of(c.tables.headers, "the block's size,", block.Size(), header.Size)
	}
	signer := types.MakeSigner(c.archive.Genesis().Config, header.Number, header.Time)
	senders := make([]common.Address, body.Len())
	for i, transaction := range block.Transactions() {
		if senders[i], err = types.Sender(signer, transaction); err != nil {
			return nil, nil, c.of(bodies, fmt.Sprintf("transaction %d with", i), "a valid signature", err)
		}
		if got := body.Sender(i); got != senders[i] {
			return nil, nil, c.of(bodies, fmt.Sprintf("the sender that signed transaction %d,", i), senders[i], got)
		}
	}
	return block, senders, nil
}

// checkReceipts compares receipts with their block's header.
func (c *blockCheck) checkReceipts(ctx context.Context, block *types.Block) (types.Receipts, error) {
	table := c.tables.receipts
	stored, err := c.archive.Receipts(ctx, c.number, nil)
	if err != nil {
		return nil, c.unreadable(ctx, table, err)
	}
	if stored.Len() != len(block.Transactions()) {
		return nil, c.of(table, "receipts of each transaction,", len(block.Transactions()), stored.Len())
	}
	receipts := make(types.Receipts, stored.Len())
	var gasUsed uint64
	for i, transaction := range block.Transactions() {
		if receipts[i], err = wholeReceipt(stored, i, transaction.Type()); err != nil {
			return nil, c.unreadable(ctx, table, err)
		}
		gasUsed = receipts[i].CumulativeGasUsed
	}
	if gasUsed != block.GasUsed() {
		return nil, c.of(table, "the block's gas used,", block.GasUsed(), gasUsed)
	}
	if bloom := types.MergeBloom(receipts); bloom != block.Bloom() {
		return nil, c.of(table, "logs with the block's bloom filter, whose hash is", crypto.Keccak256Hash(block.Header().Bloom[:]), crypto.Keccak256Hash(bloom[:]))
	}
	if root := types.DeriveSha(receipts, c.hasher); root != block.ReceiptHash() {
		return nil, c.of(table, "receipts with the root", block.ReceiptHash(), root)
	}
	return receipts, nil
}

// wholeReceipt is a stored receipt with all that its hash is made of.
func wholeReceipt(stored *archive.Receipts, i int, kind byte) (*types.Receipt, error) {
	r, err := stored.Receipt(i)
	if err != nil {
		return nil, err
	}
	receipt := &types.Receipt{Type: kind, PostState: r.StateRoot, CumulativeGasUsed: r.CumulativeGasUsed}
	if r.Succeeded {
		receipt.Status = types.ReceiptStatusSuccessful
	}
	logs := r.Logs()
	for log, ok, err := logs.Next(); ok || err != nil; log, ok, err = logs.Next() {
		if err != nil {
			return nil, err
		}
		whole := &types.Log{Address: log.Address, Data: log.Data}
		for topics := log.Topics; len(topics) > 0; topics = topics[common.HashLength:] {
			whole.Topics = append(whole.Topics, common.Hash(topics[:common.HashLength]))
		}
		receipt.Logs = append(receipt.Logs, whole)
	}
	receipt.Bloom = types.CreateBloom(receipt)
	return receipt, nil
}

// checkRows makes the rows of a block anew from what was decoded, enters them as
// those that must be there, and compares the block's own three byte by byte: so
// there is nothing in them that no check looks at.
func (c *blockCheck) checkRows(ctx context.Context, delta *evm.Delta, difficulty *big.Int) error {
	var failed error
	err := archive.EncodeBlock(putFunc(func(t *kv.Table, row kv.Row) {
		c.ledger.enter(expected, rowSubject(nil, t, row), row.Value, int(c.number-c.from))
		if failed != nil || !c.hasRowPerBlock(t) {
			return
		}
		stored, err := c.store.Get(ctx, t, row.Partition, row.Sort, c.row[:0])
		if err != nil {
			failed = unreadable(ctx, t, row.Partition, row.Sort, err)
			return
		}
		c.row = stored
		failed = sameValue(t, row, stored)
	}), delta, difficulty)
	if err != nil {
		return c.of(c.tables.bodies, "a block", "that can be stored", err)
	}
	return failed
}

// putFunc is a [kv.Putter] that is done with a row when Put returns.
type putFunc func(t *kv.Table, row kv.Row)

func (f putFunc) Put(t *kv.Table, partition []byte, sort uint64, value []byte) {
	f(t, kv.Row{Partition: partition, Sort: sort, Value: value})
}

func (c *blockCheck) unreadable(ctx context.Context, t *kv.Table, err error) error {
	return c.unreadableAt(ctx, t, c.number, err)
}

// termName says what a term of a block's logs stands for.
func termName(receipts types.Receipts, term []byte) string {
	is := func(t postings.Term) bool { return bytes.Equal(t[:], term) }
	for _, receipt := range receipts {
		for _, log := range receipt.Logs {
			if is(archive.AddressTerm(log.Address)) {
				return fmt.Sprintf("the address %s", log.Address)
			}
			for i, topic := range log.Topics {
				if is(archive.TopicTerm(i, topic)) {
					return fmt.Sprintf("the value %s of topic %d", topic, i)
				}
			}
		}
	}
	return ""
}
