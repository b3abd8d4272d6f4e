package evm

import (
	"encoding/binary"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// addressHashes and slotHashes are for all networks: a hash says nothing about a state.
var addressHashes, slotHashes keyHashes

// HashAddress returns the key of an account in the state.
func HashAddress(address common.Address) common.Hash {
	return addressHashes.of(common.BytesToHash(address[:]), common.AddressLength)
}

// HashSlot returns the key of a slot in its account's storage.
func HashSlot(slot common.Hash) common.Hash { return slotHashes.of(slot, common.HashLength) }

const (
	shardBits = 6
	placeBits = 9 // of a shard: 32,768 keys in all, in 2 MiB
)

// keyHashes computes keccak256 of keys and remembers that of the last key at each place: a call
// that reads a hundred slots would spend a tenth of its time on their hashes. It is safe for
// concurrent use.
type keyHashes struct {
	shards [1 << shardBits]hashShard
}

type hashShard struct {
	mu     sync.Mutex
	hasher crypto.KeccakState                              // guarded by mu, as are all fields; nil before the first use
	known  [1 << placeBits]struct{ key, hash common.Hash } // hash is zero before the first use
}

// of returns the hash of the last bytes of key. The others must be zero, and length the same in
// all calls.
func (h *keyHashes) of(key common.Hash, length int) common.Hash {
	shard, place := placeOf(key)
	s := &h.shards[shard]
	s.mu.Lock()
	defer s.mu.Unlock()
	e := &s.known[place]
	if e.key != key || e.hash == (common.Hash{}) {
		if s.hasher == nil {
			s.hasher = crypto.NewKeccakState()
		}
		e.key = key
		s.hasher.Reset()
		s.hasher.Write(e.key[common.HashLength-length:])
		s.hasher.Read(e.hash[:]) // never fails
	}
	return e.hash
}

// placeOf spreads keys, which are hashes or small numbers, by the upper bits of a product.
func placeOf(key common.Hash) (shard, place uint64) {
	const factor = 0x9e3779b97f4a7c15 // 2^64 divided by the golden ratio, as in Fibonacci hashing
	product := (binary.LittleEndian.Uint64(key[12:]) ^ binary.BigEndian.Uint64(key[24:])) * factor
	return product >> (64 - shardBits), product >> (64 - shardBits - placeBits) % (1 << placeBits)
}
