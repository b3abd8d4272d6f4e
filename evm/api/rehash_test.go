package api_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/trie"
)

// readBlock is a block as a client reads it.
type readBlock struct {
	header       types.Header
	Hash         common.Hash
	Size         hexutil.Uint64
	Total        *hexutil.Big `json:"totalDifficulty"`
	Transactions []json.RawMessage
	Uncles       []common.Hash
	Withdrawals  types.Withdrawals
}

func (b *readBlock) UnmarshalJSON(raw []byte) error {
	type plain readBlock
	if err := json.Unmarshal(raw, (*plain)(b)); err != nil {
		return err
	}
	return json.Unmarshal(raw, &b.header)
}

// TestAnswersHashToTheChain takes what clients read of a chain with every type
// of transaction, and makes from it the hashes that the chain is made of: what
// is lost or wrong in an answer gives another hash.
func TestAnswersHashToTheChain(t *testing.T) {
	s := serveMade(t)
	hasher := func() *trie.StackTrie { return trie.NewStackTrie(nil) }
	seen := map[uint8]bool{}
	for number, want := range s.blocks {
		var block readBlock
		s.ask(t, &block, "eth_getBlockByNumber", hexutil.Uint64(number), true)
		if block.header.Hash() != want.Hash() || block.Hash != want.Hash() {
			t.Errorf("block %d: the header hashes to %x, it says %x, want %x", number, block.header.Hash(), block.Hash, want.Hash())
		}
		if uint64(block.Size) != want.Size() || (*big.Int)(block.Total).Sign() != 0 || len(block.Uncles) != 0 {
			t.Errorf("block %d: size %d, total difficulty %v, uncles %v; want size %d", number, block.Size, block.Total, block.Uncles, want.Size())
		}
		if root := types.DeriveSha(block.Withdrawals, hasher()); root != *want.Header().WithdrawalsHash {
			t.Errorf("block %d: withdrawals hash to %x, want %x", number, root, *want.Header().WithdrawalsHash)
		}
		transactions := make(types.Transactions, len(block.Transactions))
		for i, raw := range block.Transactions {
			transactions[i] = new(types.Transaction)
			if err := transactions[i].UnmarshalJSON(raw); err != nil {
				t.Fatalf("block %d, transaction %d: %v in %s", number, i, err, raw)
			}
			seen[transactions[i].Type()] = true
			s.checkPlace(t, raw, want, i)
		}
		if root := types.DeriveSha(transactions, hasher()); root != want.TxHash() {
			t.Errorf("block %d: transactions hash to %x, want %x", number, root, want.TxHash())
		}
		var receipts types.Receipts
		s.ask(t, &receipts, "eth_getBlockReceipts", want.Hash())
		if root := types.DeriveSha(receipts, hasher()); root != want.ReceiptHash() {
			t.Errorf("block %d: receipts hash to %x, want %x", number, root, want.ReceiptHash())
		}
	}
	for kind := range uint8(types.SetCodeTxType + 1) {
		if !seen[kind] {
			t.Errorf("the chain has no transaction of type %d", kind)
		}
	}
}

// checkPlace compares what an answer says of transaction i of a block beyond the
// transaction itself, and that every way to ask for it gives the same answer.
func (s *service) checkPlace(t *testing.T, raw json.RawMessage, block *types.Block, i int) {
	t.Helper()
	tx := block.Transactions()[i]
	var place struct {
		Hash, BlockHash                               common.Hash
		BlockNumber, BlockTimestamp, TransactionIndex hexutil.Uint64
		From                                          common.Address
		GasPrice                                      *hexutil.Big
	}
	if err := json.Unmarshal(raw, &place); err != nil {
		t.Fatal(err)
	}
	sender, err := types.Sender(types.LatestSignerForChainID(madeGenesis().Config.ChainID), tx)
	if err != nil {
		t.Fatal(err)
	}
	price := new(big.Int).Add(block.BaseFee(), tx.EffectiveGasTipValue(block.BaseFee()))
	if place.Hash != tx.Hash() || place.BlockHash != block.Hash() || uint64(place.BlockNumber) != block.NumberU64() ||
		uint64(place.BlockTimestamp) != block.Time() || int(place.TransactionIndex) != i || place.From != sender || (*big.Int)(place.GasPrice).Cmp(price) != 0 {
		t.Errorf("transaction %d of block %d: %+v", i, block.NumberU64(), place)
	}
	index := hexutil.Uint64(i)
	for method, args := range map[string][]any{
		"eth_getTransactionByHash":                {tx.Hash()},
		"eth_getTransactionByBlockHashAndIndex":   {block.Hash(), index},
		"eth_getTransactionByBlockNumberAndIndex": {hexutil.Uint64(block.NumberU64()), index},
	} {
		if got := s.answer(t, method, args...); string(got.Result) != string(raw) {
			t.Errorf("%s: %s %s, in the block it is %s", method, got.Result, got.Error, raw)
		}
	}
	encoded, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	for method, args := range map[string][]any{
		"eth_getRawTransactionByHash":                {tx.Hash()},
		"eth_getRawTransactionByBlockHashAndIndex":   {block.Hash(), index},
		"eth_getRawTransactionByBlockNumberAndIndex": {hexutil.Uint64(block.NumberU64()), index},
		"debug_getRawTransaction":                    {tx.Hash()},
	} {
		var got hexutil.Bytes
		s.ask(t, &got, method, args...)
		if string(got) != string(encoded) {
			t.Errorf("%s: %s, want %x", method, got, encoded)
		}
	}
	s.checkReceipt(t, block, i, sender)
}

// checkReceipt compares what a receipt says beyond what is hashed.
func (s *service) checkReceipt(t *testing.T, block *types.Block, i int, sender common.Address) {
	t.Helper()
	tx := block.Transactions()[i]
	var whole []json.RawMessage
	s.ask(t, &whole, "eth_getBlockReceipts", hexutil.Uint64(block.NumberU64()))
	got := s.answer(t, "eth_getTransactionReceipt", tx.Hash())
	if string(got.Result) != string(whole[i]) {
		t.Errorf("receipt of %x: %s %s, in the block it is %s", tx.Hash(), got.Result, got.Error, whole[i])
	}
	var r types.Receipt
	if err := r.UnmarshalJSON(got.Result); err != nil {
		t.Fatal(err)
	}
	var parties struct {
		From                common.Address
		To, ContractAddress *common.Address
	}
	if err := json.Unmarshal(got.Result, &parties); err != nil {
		t.Fatal(err)
	}
	price := new(big.Int).Add(block.BaseFee(), tx.EffectiveGasTipValue(block.BaseFee()))
	if parties.From != sender || r.TransactionIndex != uint(i) || r.TxHash != tx.Hash() || r.BlockHash != block.Hash() || r.EffectiveGasPrice.Cmp(price) != 0 {
		t.Errorf("receipt of %x: %s", tx.Hash(), got.Result)
	}
	if (parties.To == nil) != (tx.To() == nil) || parties.To != nil && *parties.To != *tx.To() {
		t.Errorf("receipt of %x: to %v, want %v", tx.Hash(), parties.To, tx.To())
	}
	switch {
	case tx.To() != nil && parties.ContractAddress != nil:
		t.Errorf("receipt of %x: it created %x", tx.Hash(), parties.ContractAddress)
	case tx.To() == nil && (parties.ContractAddress == nil || *parties.ContractAddress != crypto.CreateAddress(sender, tx.Nonce())):
		t.Errorf("receipt of %x: it created %v", tx.Hash(), parties.ContractAddress)
	}
	if tx.Type() == types.BlobTxType && (r.BlobGasUsed != tx.BlobGas() || r.BlobGasPrice.Cmp(big.NewInt(1)) != 0) {
		t.Errorf("receipt of %x: blob gas %d at %v", tx.Hash(), r.BlobGasUsed, r.BlobGasPrice)
	}
	for n, log := range r.Logs {
		if log.TxHash != tx.Hash() || log.TxIndex != uint(i) || log.BlockHash != block.Hash() || log.BlockNumber != block.NumberU64() ||
			log.BlockTimestamp != block.Time() || log.Removed || n > 0 && log.Index != r.Logs[n-1].Index+1 {
			t.Errorf("receipt of %x: log %d is %+v", tx.Hash(), n, log)
		}
	}
}

// TestRawMatchesTheChain compares the encodings with those of the blocks.
func TestRawMatchesTheChain(t *testing.T) {
	s := serveMade(t)
	for number, block := range s.blocks {
		var header, body hexutil.Bytes
		s.ask(t, &header, "debug_getRawHeader", hexutil.Uint64(number))
		s.ask(t, &body, "debug_getRawBlock", block.Hash())
		if crypto.Keccak256Hash(header) != block.Hash() {
			t.Errorf("block %d: raw header %s", number, header)
		}
		if uint64(len(body)) != block.Size() {
			t.Errorf("block %d: raw block of %d bytes, want %d", number, len(body), block.Size())
		}
		var raw []hexutil.Bytes
		s.ask(t, &raw, "debug_getRawReceipts", hexutil.Uint64(number))
		receipts := make(types.Receipts, len(raw))
		for i := range raw {
			receipts[i] = new(types.Receipt)
			if err := receipts[i].UnmarshalBinary(raw[i]); err != nil {
				t.Fatal(err)
			}
		}
		if root := types.DeriveSha(receipts, trie.NewStackTrie(nil)); root != block.ReceiptHash() {
			t.Errorf("block %d: raw receipts hash to %x, want %x", number, root, block.ReceiptHash())
		}
	}
}
