package api

import (
	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/query"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// appendReceipt appends the receipt of transaction i of a block that was read with its
// receipts. hash is the transaction's hash.
func (b *block) appendReceipt(out []byte, i int, hash []byte) ([]byte, error) {
	return b.appendReceiptOf(out, i, hash, false)
}

// appendReceiptOf is appendReceipt. A brief receipt has null in place of logs and bloom.
func (b *block) appendReceiptOf(out []byte, i int, hash []byte, brief bool) ([]byte, error) {
	tx, err := b.transaction(i)
	if err != nil {
		return out, err
	}
	receipt, err := b.receipts.Receipt(i)
	if err != nil {
		return out, err
	}
	gasUsed, err := b.gasUsed(i, receipt.CumulativeGasUsed)
	if err != nil {
		return out, err
	}
	sender := b.body.Sender(i)
	price := tx.EffectiveGasPrice(b.baseFee)
	out = append(out, `{"blockHash":`...)
	out = appendHex(out, b.Hash[:])
	out = append(out, `,"blockNumber":`...)
	out = appendQuantity(out, b.Number.Uint64())
	out = append(out, `,"contractAddress":`...)
	if len(tx.To) == 0 {
		contract := crypto.CreateAddress(sender, tx.Nonce)
		out = appendHex(out, contract[:])
	} else {
		out = appendNull(out)
	}
	out = append(out, `,"cumulativeGasUsed":`...)
	out = appendQuantity(out, receipt.CumulativeGasUsed)
	out = append(out, `,"effectiveGasPrice":`...)
	out = appendUint256(out, &price)
	out = append(out, `,"from":`...)
	out = appendHex(out, sender[:])
	out = append(out, `,"gasUsed":`...)
	out = appendQuantity(out, gasUsed)
	if tx.Type == types.BlobTxType {
		out = b.appendBlobGas(out, len(tx.BlobHashes)/encodedHashBytes)
	}
	if brief {
		out = append(out, `,"logs":null,"logsBloom":null`...)
	} else if out, err = b.appendLogs(out, i, receipt, hash); err != nil {
		return out, err
	}
	out = appendOutcome(out, &receipt)
	out = append(out, `,"to":`...)
	out = appendOptionalAddress(out, tx.To)
	out = append(out, `,"transactionHash":`...)
	out = appendHex(out, hash)
	out = append(out, `,"transactionIndex":`...)
	out = appendQuantity(out, uint64(i))
	out = append(out, `,"type":`...)
	out = appendQuantity(out, uint64(tx.Type))
	return append(out, '}'), nil
}

// encodedHashBytes is the size of a hash in RLP.
const encodedHashBytes = 1 + common.HashLength

// gasUsed returns the gas used by transaction i alone.
func (b *block) gasUsed(i int, cumulative uint64) (uint64, error) {
	if i == 0 {
		return cumulative, nil
	}
	before, err := b.receipts.Receipt(i - 1)
	return cumulative - before.CumulativeGasUsed, err
}

func (b *block) appendBlobGas(out []byte, blobs int) []byte {
	out = append(out, `,"blobGasUsed":`...)
	out = appendQuantity(out, uint64(blobs)*params.BlobTxBlobGasPerBlob)
	if fee := query.BlobBaseFee(b.api.chain.Executor().Config(), b.Header.Header); fee != nil {
		out = append(out, `,"blobGasPrice":`...)
		out = appendBig(out, fee)
	}
	return out
}

// appendOutcome appends the status of the transaction, or the state root after it for a
// block before Byzantium.
func appendOutcome(out []byte, receipt *archive.Receipt) []byte {
	switch {
	case receipt.StateRoot != nil:
		return appendHex(append(out, `,"root":`...), receipt.StateRoot)
	case receipt.Succeeded:
		return append(out, `,"status":"0x1"`...)
	}
	return append(out, `,"status":"0x0"`...)
}

// appendLogs appends a receipt's logs and their bloom filter.
func (b *block) appendLogs(out []byte, i int, receipt archive.Receipt, hash []byte) ([]byte, error) {
	var bloom types.Bloom
	place := &b.logPlace
	if receipt.LogCount > 0 && len(place.number) == 0 {
		place.enter(chain.Ref{Number: b.Number.Uint64(), Hash: b.Hash}, b.Time)
		place.removed = b.dropped
	}
	place.transactionHash, place.transaction, place.position = hash, uint64(i), receipt.FirstLog
	out = append(out, `,"logs":[`...)
	logs := receipt.Logs()
	for first := true; ; first = false {
		log, ok, err := logs.Next()
		if err != nil {
			return out, err
		}
		if !ok {
			break
		}
		if !first {
			out = append(out, ',')
		}
		out = appendLog(out, &log, place)
		b.blooms.add(&bloom, &log)
		place.position++
	}
	out = append(out, `],"logsBloom":`...)
	return appendHex(out, bloom[:]), nil
}
