package eth

import (
	"ashlar/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/crypto"
)

// cachedHashBytes bounds the hashes of transactions that are kept, 32 bytes each.
const cachedHashBytes = 32 << 20

// transactionHashes are the hashes of a block's transactions, one after the other.
type transactionHashes []byte

// hash returns the hash of transaction i. It must not be changed.
func (h transactionHashes) hash(i int) []byte {
	return h[i*common.HashLength : (i+1)*common.HashLength]
}

// hashCache keeps the hashes of the transactions of blocks that were asked for:
// hashing is what costs most in an answer that names them. A block never
// changes, so what is kept is never wrong.
type hashCache struct {
	blocks *lru.SizeConstrainedCache[common.Hash, transactionHashes]
}

func newHashCache() hashCache {
	return hashCache{lru.NewSizeConstrainedCache[common.Hash, transactionHashes](cachedHashBytes)}
}

// of returns the hashes of the transactions of the block with that hash and body.
func (c hashCache) of(block common.Hash, body *archive.Body) (transactionHashes, error) {
	if hashes, ok := c.blocks.Get(block); ok {
		return hashes, nil
	}
	hashes := make(transactionHashes, 0, body.Len()*common.HashLength)
	for i := range body.Len() {
		raw, err := body.Transaction(i)
		if err != nil {
			return nil, err
		}
		hash := crypto.Keccak256Hash(raw)
		hashes = append(hashes, hash[:]...)
	}
	c.blocks.Add(block, hashes)
	return hashes, nil
}
