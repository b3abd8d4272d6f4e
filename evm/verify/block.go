package verify

import (
	"bytes"
	"context"
	"fmt"
	"math/big"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/history/audit"
	"ashlar/history/postings"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"
)

// blockCheck checks single blocks. It implements [audit.BlockCheck].
type blockCheck struct {
	*checker
	hasher types.ListHasher

	number   uint64 // of the block under check
	receipts types.Receipts
}

func (c *checker) newBlockCheck() audit.BlockCheck {
	return &blockCheck{checker: c, hasher: trie.NewListHasher()}
}

// of returns a finding about one of the rows that the block is read from.
func (c *blockCheck) of(t *kv.Table, what string, wanted, got any) error {
	f := c.atBlock(t, c.number)
	f.Expected, f.Got = fmt.Sprintf("%s %v", what, wanted), fmt.Sprint(got)
	return f
}

// Check implements audit.BlockCheck.
func (c *blockCheck) Check(ctx context.Context, number uint64, to kv.Putter) (transactions int, err error) {
	c.number = number
	header, err := c.header(ctx, number)
	if err != nil {
		return 0, err
	}
	difficulty, err := c.checkHeader(ctx, header)
	if err != nil {
		return 0, err
	}
	block, senders, err := c.checkBody(ctx, header)
	if err != nil {
		return 0, err
	}
	if c.receipts, err = c.checkReceipts(ctx, block); err != nil {
		return 0, err
	}
	list, err := c.checkAccessList(ctx, header)
	if err != nil {
		return 0, err
	}
	delta := &evm.Delta{Block: block, Senders: senders, Receipts: c.receipts, AccessList: list}
	if err := c.archive.EncodeBlock(to, delta, difficulty); err != nil {
		return 0, c.of(c.tables.Bodies, "a block", "that can be stored", err)
	}
	return len(senders), nil
}

// checkHeader checks a header and its links to its neighbours, and returns the total
// difficulty.
func (c *blockCheck) checkHeader(ctx context.Context, header *archive.Header) (*big.Int, error) {
	headers := c.tables.Headers
	hash := crypto.Keccak256Hash(header.RLP)
	switch {
	case !header.Number.IsUint64() || header.Number.Uint64() != c.number:
		return nil, c.of(headers, "the header of block", c.number, fmt.Sprintf("that of block %v", header.Number))
	case hash != header.Hash:
		return nil, c.of(headers, "the hash of the header,", hash, header.Hash)
	case c.number == c.Settled.Number && hash != c.Settled.Hash:
		return nil, c.of(headers, "the hash that the settled pointer names,", c.Settled.Hash, hash)
	}
	if c.number == c.To && c.To < c.Settled.Number {
		child, err := c.header(ctx, c.number+1)
		if err != nil {
			return nil, err
		}
		if child.ParentHash != hash {
			return nil, c.of(headers, fmt.Sprintf("the parent hash of block %d,", c.number+1), child.ParentHash, hash)
		}
	}
	difficulty := new(big.Int).Set(header.Difficulty)
	switch c.number {
	case 0:
		return difficulty, c.checkGenesis(header)
	case c.First: // its parent is not stored
		return header.TotalDifficulty, nil
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

// checkGenesis compares block 0 with the genesis that the archive names. The genesis may lack
// the state.
func (c *blockCheck) checkGenesis(header *archive.Header) error {
	named := c.archive.Genesis().ToBlock().Header()
	named.Root = header.Root
	if hash := named.Hash(); hash != header.Hash {
		return c.of(c.tables.Headers, "the genesis that the pointer genesis describes, with the hash", hash, header.Hash)
	}
	return nil
}

// checkBody compares a body with its header, and recovers the senders.
func (c *blockCheck) checkBody(ctx context.Context, header *archive.Header) (*types.Block, []common.Address, error) {
	bodies := c.tables.Bodies
	body, err := c.archive.Body(ctx, c.number, nil)
	if err != nil {
		return nil, nil, c.unreadableAt(ctx, bodies, c.number, err)
	}
	block, err := body.Block(header.Header)
	if err != nil {
		return nil, nil, c.unreadableAt(ctx, bodies, c.number, err)
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
		return nil, nil, c.of(c.tables.Headers, "the block's size,", block.Size(), header.Size)
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

// checkReceipts compares receipts with the block's header.
func (c *blockCheck) checkReceipts(ctx context.Context, block *types.Block) (types.Receipts, error) {
	table := c.tables.Receipts
	stored, err := c.archive.Receipts(ctx, c.number, nil)
	if err != nil {
		return nil, c.unreadableAt(ctx, table, c.number, err)
	}
	if stored.Len() != len(block.Transactions()) {
		return nil, c.of(table, "receipts of each transaction,", len(block.Transactions()), stored.Len())
	}
	receipts := make(types.Receipts, stored.Len())
	var gasUsed uint64
	for i, transaction := range block.Transactions() {
		if receipts[i], err = stored.Whole(i, transaction.Type()); err != nil {
			return nil, c.unreadableAt(ctx, table, c.number, err)
		}
		if err := c.checkStoredHash(ctx, stored, i, transaction.Hash()); err != nil {
			return nil, err
		}
		receipts[i].Bloom = types.CreateBloom(receipts[i])
		gasUsed = receipts[i].CumulativeGasUsed
	}
	// From Amsterdam on the block's gas used counts two dimensions of gas, which are not
	// in the receipts (EIP-8037).
	if block.Header().BlockAccessListHash == nil && gasUsed != block.GasUsed() {
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

// checkStoredHash checks that receipt i has the hash of its transaction if the form of the
// archive says so.
func (c *blockCheck) checkStoredHash(ctx context.Context, stored *archive.Receipts, i int, hash common.Hash) error {
	receipt, err := stored.Receipt(i)
	if err != nil {
		return c.unreadableAt(ctx, c.tables.Receipts, c.number, err)
	}
	var want []byte
	if c.archive.StoresHashes() && receipt.LogCount > 0 {
		want = hash[:]
	}
	if bytes.Equal(receipt.TransactionHash, want) {
		return nil
	}
	return c.of(c.tables.Receipts, fmt.Sprintf("beside receipt %d the transaction hash", i), hexutil.Bytes(want), hexutil.Bytes(receipt.TransactionHash))
}

// checkAccessList compares an access list with its block's header, and returns it. It
// returns nil for a block before Amsterdam.
func (c *blockCheck) checkAccessList(ctx context.Context, header *archive.Header) ([]byte, error) {
	if header.BlockAccessListHash == nil {
		return nil, nil
	}
	table := c.tables.AccessLists
	list, err := c.archive.AccessList(ctx, c.number)
	if err != nil {
		return nil, c.unreadableAt(ctx, table, c.number, err)
	}
	if hash := crypto.Keccak256Hash(list); hash != *header.BlockAccessListHash {
		return nil, c.of(table, "an access list with the hash", *header.BlockAccessListHash, hash)
	}
	return list, nil
}

// NameOf implements audit.BlockCheck. It names the address or topic of a term.
func (c *blockCheck) NameOf(partition []byte) string {
	is := func(t postings.Term) bool { return bytes.Equal(t[:], partition) }
	for _, receipt := range c.receipts {
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
