package api

import (
	"bytes"
	"encoding/binary"

	"ashlar/evm/archive"
	"ashlar/evm/keccak"
	"ashlar/evm/query"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

const (
	// cachedHashBytes bounds the memory of cached outlines, whose hashes have 32 bytes each.
	cachedHashBytes = 32 << 20
	// cachedBlockBytes is the memory of a cached block without its hashes: 142 to 200
	// bytes, depending on how full the map is. For blocks with few transactions that is
	// most of their memory.
	cachedBlockBytes = 200
)

// transactionHashes are the concatenated hashes of a block's transactions.
type transactionHashes []byte

// len returns the number of transactions.
func (h transactionHashes) len() int { return len(h) / common.HashLength }

// has reports whether transaction i exists.
func (h transactionHashes) has(i int) bool { return i < h.len() }

// hash returns the hash of transaction i. It must not be modified.
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
	if h.state == nil {
		h.state = crypto.NewKeccakState()
	}
	h.state.Reset()
	_, _ = h.state.Write(data) // never fails
	_, _ = h.state.Read(h.sum[:])
	return h.sum[:]
}

// outline is a block's body with the hashes of its transactions in place of them:
//
//	uvarint n | n × hash (32 bytes) | annex, as in a body
type outline []byte

func newOutline(body *archive.Body) (outline, error) {
	const annexBytes = 1024 // enough for 16 withdrawals
	raw, hashes := make([][]byte, body.Len()), make([]common.Hash, body.Len())
	for i := range raw {
		var err error
		if raw[i], err = body.Transaction(i); err != nil {
			return nil, err
		}
	}
	keccak.Sum(raw, hashes)
	row := binary.AppendUvarint(make([]byte, 0, body.Len()*common.HashLength+annexBytes), uint64(body.Len()))
	for _, hash := range hashes {
		row = append(row, hash[:]...)
	}
	return bytes.Clone(body.Annex.Append(row)), nil // without room to grow, which the cache would not count
}

// hashes returns the hashes of the transactions.
func (o outline) hashes() transactionHashes {
	n, size := binary.Uvarint(o)
	return transactionHashes(o[size:][:int(n)*common.HashLength])
}

// annex returns what the body holds besides transactions.
func (o outline) annex() (archive.Annex, error) {
	n, size := binary.Uvarint(o)
	return archive.DecodeAnnex(o[size+int(n)*common.HashLength:])
}

// hashCache caches outlines by block, because hashing transactions is most of the cost of
// answers that contain their hashes. Blocks are immutable, so entries never become invalid. A block
// whose body need not be that of its header is not looked up, and not cached.
type hashCache struct {
	blocks *lru.SizeConstrainedCache[common.Hash, outline]
}

func newHashCache() hashCache {
	return hashCache{lru.NewSizeConstrainedCacheWithKeySize[common.Hash, outline](
		cachedHashBytes, func(common.Hash) uint64 { return cachedBlockBytes })}
}

// of returns the transaction hashes of the block with the given hash and body.
func (c hashCache) of(block common.Hash, body *archive.Body) (transactionHashes, error) {
	if body.Len() == 0 {
		return nil, nil // nothing to cache
	}
	if found, ok := c.blocks.Get(block); ok {
		return found.hashes(), nil
	}
	made, err := newOutline(body)
	if err != nil {
		return nil, err
	}
	c.blocks.Add(block, made)
	return made.hashes(), nil
}

// ofInput returns the transaction hashes of a block that is executed again.
func (c hashCache) ofInput(input *query.Input) (transactionHashes, error) {
	if input.Body != nil {
		return c.of(input.Block.Hash(), input.Body)
	}
	block, err := input.Block.Whole()
	if err != nil {
		return nil, err
	}
	return hashesOf(block.Transactions()), nil
}

// hashesOf returns the hashes of transactions that are not those of a stored block.
func hashesOf(transactions types.Transactions) transactionHashes {
	hashes := make(transactionHashes, 0, len(transactions)*common.HashLength)
	for _, tx := range transactions {
		hash := tx.Hash()
		hashes = append(hashes, hash[:]...)
	}
	return hashes
}

// logHashes finds the hashes of the transactions of one log after the other. In archives of
// older versions, which do not store them, it keeps those of the current block.
type logHashes struct {
	block  transactionHashes // empty if they are neither cached nor worth it
	looked bool              // for them
	hash   common.Hash
}

// enter begins another block, which has the next log.
func (l *logHashes) enter() { l.block, l.looked = nil, false }

// of returns the hash of a log's transaction, valid until the next call.
func (l *logHashes) of(cache hashCache, log *query.Log) (hash []byte, err error) {
	if hash = log.StoredHash(); hash != nil {
		return hash, nil
	}
	if !l.looked {
		l.looked = true
		if l.block, err = cache.ofLog(log); err != nil {
			return nil, err
		}
	}
	if l.block.has(log.Transaction) {
		return l.block.hash(log.Transaction), nil
	}
	l.hash, err = log.TransactionHash()
	return l.hash[:], err
}

// ofLog returns the transaction hashes of a log's block if they are cached, or if so many
// of the block's logs match that most hashes will be needed anyway; else nil.
func (c hashCache) ofLog(log *query.Log) (transactionHashes, error) {
	if found, ok := c.blocks.Get(log.Block.Hash); ok {
		return found.hashes(), nil
	}
	body, err := log.Body()
	if err != nil || log.InBlock <= body.Len()/2 {
		return nil, err
	}
	return c.of(log.Block.Hash, body)
}
