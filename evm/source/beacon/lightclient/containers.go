package lightclient

import (
	"errors"
	"fmt"
	"math/big"
	"reflect"
	"slices"

	"ashlar/evm/source/beacon/bls"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// BeaconHeader is the header of a beacon block.
type BeaconHeader struct {
	Slot          uint64      `json:"slot,string"`
	ProposerIndex uint64      `json:"proposer_index,string"`
	ParentRoot    common.Hash `json:"parent_root"`
	StateRoot     common.Hash `json:"state_root"`
	BodyRoot      common.Hash `json:"body_root"`
}

// Header is a light client header: a beacon block's header with a proof of its execution block.
// Until Gloas the proof is for the execution block's header, from then on for its hash alone.
type Header struct {
	Beacon             BeaconHeader     `json:"beacon"`
	Execution          *ExecutionHeader `json:"execution"`
	ExecutionBlockHash common.Hash      `json:"execution_block_hash"`
	ExecutionBranch    []common.Hash    `json:"execution_branch"`
}

// ExecutionHash returns the hash of the header's execution block. That of a block since Gloas
// is the last one before it: its own is revealed later. It is zero before Capella.
func (h *Header) ExecutionHash() common.Hash {
	if h.Execution != nil {
		return h.Execution.BlockHash
	}
	return h.ExecutionBlockHash
}

// isEmpty reports whether there is no header: JSON has zeros for it.
func (h *Header) isEmpty() bool {
	return h.Beacon == (BeaconHeader{}) && h.ExecutionBlockHash == (common.Hash{}) && isZero(h.ExecutionBranch) && (h.Execution == nil || h.Execution.isEmpty())
}

// ExecutionHeader is the header of an execution block, as beacon blocks prove it.
type ExecutionHeader struct {
	ParentHash       common.Hash    `json:"parent_hash"`
	FeeRecipient     common.Address `json:"fee_recipient"`
	StateRoot        common.Hash    `json:"state_root"`
	ReceiptsRoot     common.Hash    `json:"receipts_root"`
	LogsBloom        types.Bloom    `json:"logs_bloom"`
	PrevRandao       common.Hash    `json:"prev_randao"`
	BlockNumber      uint64         `json:"block_number,string"`
	GasLimit         uint64         `json:"gas_limit,string"`
	GasUsed          uint64         `json:"gas_used,string"`
	Timestamp        uint64         `json:"timestamp,string"`
	ExtraData        extraData      `json:"extra_data"`
	BaseFee          *baseFee       `json:"base_fee_per_gas"`
	BlockHash        common.Hash    `json:"block_hash"`
	TransactionsRoot common.Hash    `json:"transactions_root"`
	WithdrawalsRoot  common.Hash    `json:"withdrawals_root"`
	BlobGasUsed      uint64         `json:"blob_gas_used,string"`
	ExcessBlobGas    uint64         `json:"excess_blob_gas,string"`
}

func (h *ExecutionHeader) isEmpty() bool {
	if len(h.ExtraData) > 0 || h.BaseFee != nil && (*big.Int)(h.BaseFee).Sign() != 0 {
		return false
	}
	rest := *h
	rest.ExtraData, rest.BaseFee = nil, nil
	return reflect.ValueOf(rest).IsZero()
}

// extraData is at most 32 bytes.
type extraData []byte

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *extraData) UnmarshalText(text []byte) error {
	if err := (*hexutil.Bytes)(d).UnmarshalText(text); err != nil {
		return err
	}
	if len(*d) > 32 {
		return fmt.Errorf("extra data of %d bytes (want at most 32)", len(*d))
	}
	return nil
}

// baseFee is a number of at most 256 bits, in decimal.
type baseFee big.Int

// UnmarshalText implements [encoding.TextUnmarshaler].
func (f *baseFee) UnmarshalText(text []byte) error {
	const digits = 78 // of 2^256
	n, ok := new(big.Int), false
	if len(text) <= digits {
		n, ok = n.SetString(string(text), 10)
	}
	if !ok || n.Sign() < 0 || n.BitLen() > 256 {
		return errors.New("invalid base fee (want a decimal number of at most 256 bits)")
	}
	*f = baseFee(*n)
	return nil
}

// publicKey is the encoded public key of a validator.
type publicKey [bls.PublicKeySize]byte

// UnmarshalText implements [encoding.TextUnmarshaler].
func (k *publicKey) UnmarshalText(text []byte) error {
	return hexutil.UnmarshalFixedText("public key", text, k[:])
}

// signature is an encoded aggregate signature.
type signature [bls.SignatureSize]byte

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *signature) UnmarshalText(text []byte) error {
	return hexutil.UnmarshalFixedText("signature", text, s[:])
}

// SyncCommittee are the validators that sign the chain's blocks for a period.
type SyncCommittee struct {
	PublicKeys []publicKey `json:"pubkeys"`
	Aggregate  publicKey   `json:"aggregate_pubkey"`
}

// isEmpty reports whether there is no committee: JSON has zeros for it.
func (c *SyncCommittee) isEmpty() bool {
	return c.Aggregate == publicKey{} && !slices.ContainsFunc(c.PublicKeys, func(k publicKey) bool { return k != publicKey{} })
}

// SyncAggregate is the signature of some members of a sync committee. Bit i of Bits, from the
// lowest of the first byte, is for member i.
type SyncAggregate struct {
	Bits      hexutil.Bytes `json:"sync_committee_bits"`
	Signature signature     `json:"sync_committee_signature"`
}

// Bootstrap is the committee of a trusted block's period, with a proof.
type Bootstrap struct {
	Header    Header        `json:"header"`
	Committee SyncCommittee `json:"current_sync_committee"`
	Branch    []common.Hash `json:"current_sync_committee_branch"`
}

// Update is a header that a committee has signed, and what its state says: the next committee
// and the finalized block. Both may be absent.
type Update struct {
	Attested        Header        `json:"attested_header"`
	Next            SyncCommittee `json:"next_sync_committee"`
	NextBranch      []common.Hash `json:"next_sync_committee_branch"`
	Finalized       Header        `json:"finalized_header"`
	FinalizedBranch []common.Hash `json:"finality_branch"`
	Aggregate       SyncAggregate `json:"sync_aggregate"`
	SignatureSlot   uint64        `json:"signature_slot,string"`
}

// namesNext reports whether an update has the next committee.
func (u *Update) namesNext() bool { return !isZero(u.NextBranch) }

// namesFinalized reports whether an update has a finalized block.
func (u *Update) namesFinalized() bool { return !isZero(u.FinalizedBranch) }
