package api

import (
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// appendBlock appends a block, with whole transactions or with their hashes only. An outlined
// block has only hashes.
func (b *block) appendBlock(out []byte, whole bool, room jsonrpc.Room) (_ []byte, err error) {
	hashes := b.hashes
	if hashes == nil {
		if hashes, err = b.api.hashes.of(b.Hash, &b.body); err != nil {
			return out, err
		}
	}
	out = append(out, '{')
	switch {
	case !b.pending:
		out = appendHeader(out, b.Header.Header, b.Hash)
	case b.api.config.StrictClients:
		out = appendStrictPendingHeader(out, b.Header.Header)
	default:
		out = appendPendingHeader(out, b.Header.Header)
	}
	out = b.appendSize(out)
	out, err = room.AppendArray(append(out, `,"transactions":`...), hashes.len(), func(out []byte, i int) ([]byte, error) {
		if whole {
			return b.appendTransaction(out, i, hashes.hash(i))
		}
		return appendHex(out, hashes.hash(i)), nil
	})
	if err != nil {
		return out, err
	}
	out, err = b.appendUnclesAndWithdrawals(out)
	return append(out, '}'), err
}

// appendSize appends the total difficulty and the size, each with a comma before it.
func (b *block) appendSize(out []byte) []byte {
	if b.TotalDifficulty != nil { // simulated blocks have none
		out = append(out, `,"totalDifficulty":`...)
		out = appendBig(out, b.TotalDifficulty)
	}
	out = append(out, `,"size":`...)
	return appendQuantity(out, b.Size)
}

// appendUnclesAndWithdrawals appends the uncles and any withdrawals, each with a comma
// before it.
func (b *block) appendUnclesAndWithdrawals(out []byte) ([]byte, error) {
	out, err := b.appendUncleHashes(append(out, `,"uncles":`...))
	if err != nil {
		return out, err
	}
	withdrawals, err := b.body.Withdrawals()
	if err != nil {
		return out, err
	}
	if withdrawals != nil {
		out = jsonrpc.AppendArray(append(out, `,"withdrawals":`...), withdrawals, appendWithdrawal)
	}
	return out, nil
}

// appendHeader appends the members of a block that come from its header, without a leading
// or trailing comma.
func appendHeader(out []byte, h *types.Header, hash common.Hash) []byte {
	out = append(out, `"number":`...)
	out = appendBig(out, h.Number)
	out = append(out, `,"hash":`...)
	out = appendHex(out, hash[:])
	out = append(out, `,"nonce":`...)
	out = appendHex(out, h.Nonce[:])
	out = append(out, `,"logsBloom":`...)
	out = appendHex(out, h.Bloom[:])
	return appendHeaderRest(out, h)
}

// appendPendingHeader is appendHeader for the pending block, which has no number, hash,
// nonce and bloom.
func appendPendingHeader(out []byte, h *types.Header) []byte {
	out = append(out, `"number":null,"hash":null,"nonce":null,"logsBloom":null`...)
	return appendHeaderRest(out, h)
}

// appendStrictPendingHeader is appendPendingHeader with the number and the bloom.
func appendStrictPendingHeader(out []byte, h *types.Header) []byte {
	out = append(out, `"number":`...)
	out = appendBig(out, h.Number)
	out = append(out, `,"hash":null,"nonce":null,"logsBloom":`...)
	out = appendHex(out, h.Bloom[:])
	return appendHeaderRest(out, h)
}

// appendHeaderRest appends the members of a header that a pending block has too, each
// with a comma before it.
func appendHeaderRest(out []byte, h *types.Header) []byte {
	out = append(out, `,"parentHash":`...)
	out = appendHex(out, h.ParentHash[:])
	out = append(out, `,"mixHash":`...)
	out = appendHex(out, h.MixDigest[:])
	out = append(out, `,"sha3Uncles":`...)
	out = appendHex(out, h.UncleHash[:])
	out = append(out, `,"stateRoot":`...)
	out = appendHex(out, h.Root[:])
	out = append(out, `,"miner":`...)
	out = appendHex(out, h.Coinbase[:])
	out = append(out, `,"difficulty":`...)
	out = appendBig(out, h.Difficulty)
	out = append(out, `,"extraData":`...)
	out = appendHex(out, h.Extra)
	out = append(out, `,"gasLimit":`...)
	out = appendQuantity(out, h.GasLimit)
	out = append(out, `,"gasUsed":`...)
	out = appendQuantity(out, h.GasUsed)
	out = append(out, `,"timestamp":`...)
	out = appendQuantity(out, h.Time)
	out = append(out, `,"transactionsRoot":`...)
	out = appendHex(out, h.TxHash[:])
	out = append(out, `,"receiptsRoot":`...)
	out = appendHex(out, h.ReceiptHash[:])
	return appendForkMembers(out, h)
}

// appendForkMembers appends the members of a header that forks have added.
func appendForkMembers(out []byte, h *types.Header) []byte {
	if h.BaseFee != nil {
		out = append(out, `,"baseFeePerGas":`...)
		out = appendBig(out, h.BaseFee)
	}
	if h.WithdrawalsHash != nil {
		out = append(out, `,"withdrawalsRoot":`...)
		out = appendHex(out, h.WithdrawalsHash[:])
	}
	if h.BlobGasUsed != nil {
		out = append(out, `,"blobGasUsed":`...)
		out = appendQuantity(out, *h.BlobGasUsed)
	}
	if h.ExcessBlobGas != nil {
		out = append(out, `,"excessBlobGas":`...)
		out = appendQuantity(out, *h.ExcessBlobGas)
	}
	if h.ParentBeaconRoot != nil {
		out = append(out, `,"parentBeaconBlockRoot":`...)
		out = appendHex(out, h.ParentBeaconRoot[:])
	}
	if h.RequestsHash != nil {
		out = append(out, `,"requestsHash":`...)
		out = appendHex(out, h.RequestsHash[:])
	}
	if h.BlockAccessListHash != nil {
		out = append(out, `,"blockAccessListHash":`...)
		out = appendHex(out, h.BlockAccessListHash[:])
	}
	if h.SlotNumber != nil {
		out = append(out, `,"slotNumber":`...)
		out = appendQuantity(out, *h.SlotNumber)
	}
	return out
}

// appendUncleHashes appends the array of the hashes of the block's uncles.
func (b *block) appendUncleHashes(out []byte) ([]byte, error) {
	if !b.body.HasUncles() {
		return append(out, "[]"...), nil
	}
	uncles, err := b.body.Uncles()
	return jsonrpc.AppendArray(out, uncles, func(out []byte, uncle *types.Header) []byte {
		return appendHash(out, uncle.Hash())
	}), err
}

// appendUncle appends an uncle: a block of which only the header is known.
func appendUncle(out []byte, uncle *types.Header) []byte {
	out = append(out, '{')
	out = appendHeader(out, uncle, uncle.Hash())
	out = append(out, `,"size":`...)
	out = appendQuantity(out, types.NewBlockWithHeader(uncle).Size())
	return append(out, `,"uncles":[]}`...)
}

func appendWithdrawal(out []byte, w *types.Withdrawal) []byte {
	out = append(out, `{"index":`...)
	out = appendQuantity(out, w.Index)
	out = append(out, `,"validatorIndex":`...)
	out = appendQuantity(out, w.Validator)
	out = append(out, `,"address":`...)
	out = appendHex(out, w.Address[:])
	out = append(out, `,"amount":`...)
	out = appendQuantity(out, w.Amount)
	return append(out, '}')
}

// rlp returns the encoding of the whole block.
func (b *block) rlp() ([]byte, error) {
	whole, err := b.body.Block(b.Header.Header)
	if err != nil {
		return nil, err
	}
	return rlp.EncodeToBytes(whole)
}
