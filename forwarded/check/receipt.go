package check

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
)

// blobGas is the gas of one blob.
const blobGas = 1 << 17

// Receipt is a receipt of a block, with all logs.
type Receipt struct {
	types.Receipt
	// depositNonce and depositVersion are those of a deposit since Canyon.
	depositNonce, depositVersion *hexutil.Uint64
}

// depositReceipt is a receipt of a deposit since Canyon, as the root of receipts covers it.
type depositReceipt struct {
	PostStateOrStatus []byte
	CumulativeGasUsed uint64
	Bloom             types.Bloom
	Logs              []*types.Log
	Nonce, Version    uint64
}

// receipts implements [types.DerivableList].
type receipts []*Receipt

func (r receipts) Len() int { return len(r) }

func (r receipts) EncodeIndex(i int, b *bytes.Buffer) {
	one := r[i]
	if one.Type != depositType {
		types.Receipts{&one.Receipt}.EncodeIndex(0, b)
		return
	}
	b.WriteByte(depositType)
	status := []byte{}
	if one.Status == types.ReceiptStatusSuccessful {
		status = []byte{1}
	}
	if one.depositVersion == nil { // before Canyon: as other receipts
		_ = rlp.Encode(b, []any{status, one.CumulativeGasUsed, one.Bloom, one.Logs})
		return
	}
	_ = rlp.Encode(b, &depositReceipt{status, one.CumulativeGasUsed, one.Bloom, one.Logs, uint64(*one.depositNonce), uint64(*one.depositVersion)})
}

// DecodeReceipts decodes and checks the receipts of the block, as eth_getBlockReceipts returns
// them.
func (b *Block) DecodeReceipts(answer json.RawMessage) ([]*Receipt, error) {
	var decoded []struct {
		Status     *hexutil.Uint64 `json:"status"`
		Root       hexutil.Bytes   `json:"root"`
		Cumulative hexutil.Uint64  `json:"cumulativeGasUsed"`
		Nonce      *hexutil.Uint64 `json:"depositNonce"`
		Version    *hexutil.Uint64 `json:"depositReceiptVersion"`
		Logs       []struct {
			Address common.Address `json:"address"`
			Topics  []common.Hash  `json:"topics"`
			Data    hexutil.Bytes  `json:"data"`
		} `json:"logs"`
	}
	if err := json.Unmarshal(answer, &decoded); err != nil {
		return nil, fmt.Errorf("decode the receipts: %w", err)
	}
	if len(decoded) != len(b.Transactions) {
		return nil, fmt.Errorf("%d receipts of %d transactions", len(decoded), len(b.Transactions))
	}
	all := make([]*Receipt, len(decoded))
	var gas uint64
	var logs uint
	for i, d := range decoded {
		tx := &b.Transactions[i]
		r := &Receipt{Receipt: types.Receipt{
			Type: depositType, CumulativeGasUsed: uint64(d.Cumulative), PostState: d.Root, TxHash: tx.Hash, GasUsed: uint64(d.Cumulative) - gas,
			BlockHash: b.Hash, BlockNumber: b.Header.Number, TransactionIndex: uint(i), EffectiveGasPrice: new(big.Int), Logs: []*types.Log{},
		}}
		if d.Status != nil {
			r.Status, r.PostState = uint64(*d.Status), nil
		}
		// The root covers several of these in the same way.
		if whole := len(r.PostState) == common.HashLength && tx.deposit == nil; r.Status > types.ReceiptStatusSuccessful || len(r.PostState) > 0 && !whole {
			return nil, fmt.Errorf("receipt %d has the status %d and the state root %#x (want 0 or 1, or 32 bytes)", i, r.Status, []byte(r.PostState))
		}
		for _, log := range d.Logs {
			r.Logs = append(r.Logs, &types.Log{
				Address: log.Address, Topics: log.Topics, Data: log.Data, BlockNumber: b.Header.Number.Uint64(), BlockHash: b.Hash,
				BlockTimestamp: b.Header.Time, TxHash: tx.Hash, TxIndex: uint(i), Index: logs,
			})
			logs++
		}
		b.derive(r, tx, d.Nonce, d.Version)
		r.Bloom = types.CreateBloom(&r.Receipt)
		all[i], gas = r, uint64(d.Cumulative)
	}
	if root := types.DeriveSha(receipts(all), trie.NewStackTrie(nil)); root != b.Header.ReceiptHash {
		if gas == b.Header.GasUsed && b.mayLackRoots(all) {
			return nil, ErrOutcomes
		}
		return nil, fmt.Errorf("the root of the receipts is %s, the header says %s", root, b.Header.ReceiptHash)
	}
	return all, nil
}

// mayLackRoots reports whether receipts may have had state roots that the node does not keep: reth sends a status in their place.
// The forks of the chain are not known here, but Byzantium came before base fees. The logs must be those of the header.
func (b *Block) mayLackRoots(all []*Receipt) bool {
	var bloom types.Bloom
	for _, r := range all {
		for i := range bloom {
			bloom[i] |= r.Bloom[i]
		}
	}
	return bloom == b.Header.Bloom && b.Header.BaseFee == nil && !slices.ContainsFunc(all, func(r *Receipt) bool { return r.Type != types.LegacyTxType || len(r.PostState) > 0 })
}

// derive fills what follows from the transaction.
func (b *Block) derive(r *Receipt, tx *Transaction, nonce, version *hexutil.Uint64) {
	var own uint64
	if tx.deposit != nil {
		if nonce != nil && version != nil {
			r.depositNonce, r.depositVersion = nonce, version
			own = uint64(*nonce)
		}
	} else {
		r.Type, own = tx.signed.Type(), tx.signed.Nonce()
		r.EffectiveGasPrice = b.price(tx.signed)
		r.BlobGasUsed = blobGas * uint64(len(tx.signed.BlobHashes()))
	}
	if tx.to() == nil && (tx.deposit == nil || r.depositNonce != nil) {
		r.ContractAddress = crypto.CreateAddress(tx.From, own)
	}
}

// ReceiptJSON returns a receipt of the block as eth_getTransactionReceipt returns it.
func (b *Block) ReceiptJSON(r *Receipt) (json.RawMessage, error) {
	members, err := membersOf(&r.Receipt)
	if err != nil {
		return nil, err
	}
	tx := &b.Transactions[r.TransactionIndex]
	members["type"], members["from"], members["to"] = hexutil.Uint64(r.Type), tx.From, tx.to()
	if r.ContractAddress == (common.Address{}) {
		members["contractAddress"] = nil
	}
	if len(r.PostState) > 0 {
		delete(members, "status")
	} else {
		delete(members, "root")
	}
	if r.BlobGasUsed == 0 {
		delete(members, "blobGasUsed")
	}
	if r.depositVersion != nil {
		members["depositNonce"], members["depositReceiptVersion"] = r.depositNonce, r.depositVersion
	}
	return json.Marshal(members)
}
