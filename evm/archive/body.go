package archive

import (
	"encoding/binary"
	"fmt"

	"ashlar/history/rows"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// Body is a stored block body. It refers to its row and decodes parts on request.
type Body struct {
	Annex
	ends         rows.Offsets
	senders      []byte
	transactions []byte
}

// Annex is what a body holds besides transactions.
type Annex struct {
	uncles      []byte // RLP of the list of headers
	withdrawals []byte // RLP of the list, empty if the block has no list
}

// encodeBody makes the row of a block in the bodies table:
//
//	uvarint n | n × end offset (uint32 little-endian) | n × sender (20 bytes)
//	uvarint length, uncles RLP | uvarint length, withdrawals RLP
//	n × transaction, as it is hashed (EIP-2718)
func encodeBody(block *types.Block, senders []common.Address) ([]byte, error) {
	transactions := block.Transactions()
	if len(senders) != len(transactions) {
		return nil, fmt.Errorf("block %d: %d senders for %d transactions", block.NumberU64(), len(senders), len(transactions))
	}
	row := binary.AppendUvarint(make([]byte, 0, block.Size()+uint64(24*len(senders))+64), uint64(len(transactions)))
	var end uint32
	for _, transaction := range transactions {
		end += uint32(transaction.Size())
		row = binary.LittleEndian.AppendUint32(row, end)
	}
	for _, sender := range senders {
		row = append(row, sender[:]...)
	}
	uncles, err := rlp.EncodeToBytes(block.Uncles())
	if err != nil {
		return nil, fmt.Errorf("encode uncles of block %d: %w", block.NumberU64(), err)
	}
	var withdrawals []byte
	if block.Withdrawals() != nil {
		if withdrawals, err = rlp.EncodeToBytes(block.Withdrawals()); err != nil {
			return nil, fmt.Errorf("encode withdrawals of block %d: %w", block.NumberU64(), err)
		}
	}
	row = Annex{uncles, withdrawals}.Append(row)
	begin := len(row)
	for _, transaction := range transactions {
		raw, err := transaction.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("encode transaction %x: %w", transaction.Hash(), err)
		}
		row = append(row, raw...)
	}
	if len(row)-begin != int(end) {
		return nil, fmt.Errorf("block %d: transactions take %d bytes, their sizes say %d", block.NumberU64(), len(row)-begin, end)
	}
	return row, nil
}

// decodeBody decodes a row of the bodies table. The body refers to row.
func decodeBody(row []byte) (Body, error) {
	r := rows.Decode(row)
	b := Body{ends: r.Offsets()}
	b.senders = r.Take(uint64(b.ends.Len()) * common.AddressLength)
	b.Annex = takeAnnex(&r)
	b.transactions = r.Rest()
	return b, r.End("bodies")
}

// Append appends the annex as it is stored in a body.
func (a Annex) Append(dst []byte) []byte {
	dst = append(binary.AppendUvarint(dst, uint64(len(a.uncles))), a.uncles...)
	return append(binary.AppendUvarint(dst, uint64(len(a.withdrawals))), a.withdrawals...)
}

func takeAnnex(r *rows.Decoder) (a Annex) {
	a.uncles = r.UvarintBytes()
	a.withdrawals = r.UvarintBytes()
	return a
}

// DecodeAnnex decodes what Append has encoded. The annex refers to encoded.
func DecodeAnnex(encoded []byte) (Annex, error) {
	r := rows.Decode(encoded)
	a := takeAnnex(&r)
	return a, r.End("bodies")
}

// NewBody returns the body of a block that is not stored.
func NewBody(block *types.Block, senders []common.Address) (Body, error) {
	row, err := encodeBody(block, senders)
	if err != nil {
		return Body{}, err
	}
	return decodeBody(row)
}

// Len is the number of transactions.
func (b *Body) Len() int { return b.ends.Len() }

// Transaction returns the canonical encoding (EIP-2718) of transaction i, with i < Len. The
// bytes belong to the body.
func (b *Body) Transaction(i int) ([]byte, error) {
	raw, ok := b.ends.Item(b.transactions, i)
	if !ok {
		return nil, fmt.Errorf("%w: bodies row: transaction %d lies outside it", ErrCorrupt, i)
	}
	return raw, nil
}

// DecodeTransaction returns transaction i, with i < Len.
func (b *Body) DecodeTransaction(i int) (*types.Transaction, error) {
	raw, err := b.Transaction(i)
	if err != nil {
		return nil, err
	}
	transaction := new(types.Transaction)
	if err := transaction.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("%w: bodies row: transaction %d: %v", ErrCorrupt, i, err)
	}
	return transaction, nil
}

// Sender returns the sender of transaction i, with i < Len.
func (b *Body) Sender(i int) common.Address {
	return common.Address(b.senders[i*common.AddressLength : (i+1)*common.AddressLength])
}

// Uncles decodes the uncles' headers.
func (a *Annex) Uncles() ([]*types.Header, error) {
	var uncles []*types.Header
	if err := rlp.DecodeBytes(a.uncles, &uncles); err != nil {
		return nil, fmt.Errorf("%w: bodies row: uncles: %v", ErrCorrupt, err)
	}
	return uncles, nil
}

// HasUncles reports whether there are uncles, without decoding them.
func (a *Annex) HasUncles() bool { return len(a.uncles) > 1 }

// Withdrawals decodes the withdrawals; nil if the block is from before Shanghai.
func (a *Annex) Withdrawals() (types.Withdrawals, error) {
	if len(a.withdrawals) == 0 {
		return nil, nil
	}
	withdrawals, err := decodeWithdrawals(a.withdrawals)
	if err != nil {
		return nil, fmt.Errorf("%w: bodies row: withdrawals: %v", ErrCorrupt, err)
	}
	return withdrawals, nil
}

// decodeWithdrawals decodes an RLP list of withdrawals. Every answer with a block needs
// them, and decoding them by reflection takes longer than the rest of the row.
func decodeWithdrawals(list []byte) (types.Withdrawals, error) {
	content, rest, err := rlp.SplitList(list)
	if err != nil || len(rest) != 0 {
		return nil, fmt.Errorf("expected one list: %d bytes follow it, %v", len(rest), err)
	}
	n, err := rlp.CountValues(content)
	if err != nil {
		return nil, err
	}
	items, withdrawals := make([]types.Withdrawal, n), make(types.Withdrawals, n)
	for i := range items {
		withdrawals[i] = &items[i]
		if content, err = decodeWithdrawal(content, &items[i]); err != nil {
			return nil, fmt.Errorf("number %d: %w", i, err)
		}
	}
	return withdrawals, nil
}

// decodeWithdrawal decodes the first withdrawal of a list and returns the rest.
func decodeWithdrawal(content []byte, w *types.Withdrawal) (following []byte, err error) {
	fields, following, err := rlp.SplitList(content)
	if err != nil {
		return nil, err
	}
	if w.Index, fields, err = rlp.SplitUint64(fields); err != nil {
		return nil, err
	}
	if w.Validator, fields, err = rlp.SplitUint64(fields); err != nil {
		return nil, err
	}
	address, fields, err := rlp.SplitString(fields)
	if err != nil {
		return nil, err
	}
	if w.Amount, fields, err = rlp.SplitUint64(fields); err != nil {
		return nil, err
	}
	if len(address) != common.AddressLength || len(fields) != 0 {
		return nil, fmt.Errorf("an address of %d bytes and %d bytes behind the amount, expected 20 and 0", len(address), len(fields))
	}
	copy(w.Address[:], address)
	return following, nil
}

// Block returns the whole block.
func (b *Body) Block(header *types.Header) (*types.Block, error) {
	body := types.Body{Transactions: make(types.Transactions, b.Len())}
	var err error
	for i := range body.Transactions {
		if body.Transactions[i], err = b.DecodeTransaction(i); err != nil {
			return nil, err
		}
	}
	if body.Uncles, err = b.Uncles(); err != nil {
		return nil, err
	}
	if body.Withdrawals, err = b.Withdrawals(); err != nil {
		return nil, err
	}
	return types.NewBlockWithHeader(header).WithBody(body), nil
}
