package era

import (
	"bytes"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// encodedReceipts are receipts in the form in which they are hashed into the root.
// They are not decoded: every byte counts towards the root.
type encodedReceipts [][]byte

func (r encodedReceipts) Len() int { return len(r) }

func (r encodedReceipts) EncodeIndex(i int, out *bytes.Buffer) { out.Write(r[i]) }

// decodeReceipts takes the list of an era1 file apart: a receipt without a type is a
// list in it, one with a type is a string.
func decodeReceipts(list []byte) (types.DerivableList, error) {
	content, rest, err := rlp.SplitList(list)
	if err == nil && len(rest) > 0 {
		err = rlp.ErrMoreThanOneValue
	}
	var receipts encodedReceipts
	for err == nil && len(content) > 0 {
		var kind rlp.Kind
		var item []byte
		whole := content
		kind, item, content, err = rlp.Split(content)
		if kind == rlp.List {
			item = whole[:len(whole)-len(content)]
		}
		receipts = append(receipts, item)
	}
	return receipts, err
}

// decodeSlimReceipts decodes the list of an ERE file and computes the blooms that it
// leaves out.
func decodeSlimReceipts(list []byte) (types.DerivableList, error) {
	var slim []*types.SlimReceipt
	if err := rlp.DecodeBytes(list, &slim); err != nil {
		return nil, err
	}
	receipts := make(types.Receipts, len(slim))
	for i := range slim {
		receipts[i] = (*types.Receipt)(slim[i])
		receipts[i].Bloom = types.CreateBloom(receipts[i])
	}
	return receipts, nil
}

// encodeReceipts encodes receipts for a file of a format.
func encodeReceipts(format Format, receipts types.Receipts) ([]byte, error) {
	if format == ERE {
		slim := make([]*types.SlimReceipt, len(receipts))
		for i := range receipts {
			slim[i] = (*types.SlimReceipt)(receipts[i])
		}
		return rlp.EncodeToBytes(slim)
	}
	for _, receipt := range receipts {
		receipt.Bloom = types.CreateBloom(receipt)
	}
	return rlp.EncodeToBytes(receipts)
}
