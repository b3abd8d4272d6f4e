package api

import (
	"ashlar/evm/archive"
	"ashlar/evm/query"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/crypto"
)

const (
	// cachedHashBytes bounds the hashes of transactions that are kept, 32 bytes each.
	cachedHashBytes = 32 << 20
	// cachedBlockBytes is what a block takes in the cache beside the hashes: 142 to
	// 200 bytes, as full as its map is. For blocks of few transactions that is most of it.
	cachedBlockBytes = 200
)

// transactionHashes are the hashes of a block's transactions, one after the other.
type transactionHashes []byte

// has says whether there is a transaction i.
func (h transactionHashes) has(i int) bool { return i < len(h)/common.HashLength }

// hash returns the hash of transaction i. It must not be changed.
func (h transactionHashes) hash(i int) []byte {
	return h[i*common.HashLength : (i+1)*common.HashLength]
}

// hasher computes keccak-256 without allocating. It belongs to one goroutine; its zero
// value is ready.
type hasher struct {
	state crypto.KeccakState
	sum   common.Hash
}

// hash returns the hash of data, valid until the next call.
func (h *hasher) hash(data []byte) []byte {
	h.hashInto(h.sum[:], data)
	return h.sum[:]
}

// hashInto writes the hash of data to sum, which has the length of a hash.
func (h *hasher) hashInto(sum, data []byte) {
	if h.state == nil {
		h.state = crypto.NewKeccakState()
	}
	h.state.Reset()
	_, _ = h.state.Write(data) // a hash takes whatever it is given
	_, _ = h.state.Read(sum)
}

// hashCache keeps the hashes of the transactions of blocks that were asked for:
// hashing is what costs most in an answer that names them. A block never
// changes, so what is kept is never wrong.
type hashCache struct {
	blocks *lru.SizeConstrainedCache[common.Hash, transactionHashes]
}

func newHashCache() hashCache {
	return hashCache{lru.NewSizeConstrainedCacheWithKeySize[common.Hash, transactionHashes](
		cachedHashBytes, func(common.Hash) uint64 { return cachedBlockBytes })}
}

// of returns the hashes of the transactions of the block with that hash and body.
func (c hashCache) of(block common.Hash, body *archive.Body) (transactionHashes, error) {
	if body.Len() == 0 {
		return nil, nil // nothing to keep
	}
	if hashes, ok := c.blocks.Get(block); ok {
		return hashes, nil
	}
	hashes := make(transactionHashes, body.Len()*common.HashLength)
	var h hasher
	for i := range body.Len() {
		raw, err := body.Transaction(i)
		if err != nil {
			return nil, err
		}
		h.hashInto(hashes.hash(i), raw)
	}
	c.blocks.Add(block, hashes)
	return hashes, nil
}

// ofLog returns the hashes of the transactions in a log's block if they are known, or
// if so many of the block's logs were found that most will be wanted anyway; else nil.
func (c hashCache) ofLog(log *query.Log) (transactionHashes, error) {
	if hashes, ok := c.blocks.Get(log.Block.Hash); ok {
		return hashes, nil
	}
	body, err := log.Body()
	if err != nil || log.InBlock <= body.Len()/2 {
		return nil, err
	}
	return c.of(log.Block.Hash, body)
}
