package evm

import (
	"encoding/binary"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Many goroutines hash keys that share places, numbers and hashes among them.
func TestKeyHashes(t *testing.T) {
	var group sync.WaitGroup
	for seed := range uint64(4) {
		group.Go(func() {
			r := rand.New(rand.NewPCG(seed, 1))
			for range 100_000 {
				var slot common.Hash
				binary.BigEndian.PutUint64(slot[24:], r.Uint64N(20_000))
				if r.IntN(2) == 0 {
					slot = crypto.Keccak256Hash(slot[:])
				}
				address := common.BytesToAddress(slot[:])
				if got, want := HashSlot(slot), crypto.Keccak256Hash(slot[:]); got != want {
					t.Errorf("slot %v: %v, expected %v", slot, got, want)
				}
				if got, want := HashAddress(address), crypto.Keccak256Hash(address[:]); got != want {
					t.Errorf("address %v: %v, expected %v", address, got, want)
				}
			}
		})
	}
	group.Wait()
}

// Slots of variables, of arrays and of mappings find room beside each other.
func TestKeyHashesSpread(t *testing.T) {
	array := crypto.Keccak256Hash(make([]byte, common.HashLength)).Big()
	slot := func(i uint64) common.Hash { return common.BigToHash(new(big.Int).SetUint64(i)) }
	const keys = 8192
	for name, key := range map[string]func(i uint64) common.Hash{
		"variables": slot,
		"array":     func(i uint64) common.Hash { return common.BigToHash(new(big.Int).Add(array, slot(i).Big())) },
		"mapping":   func(i uint64) common.Hash { at := slot(i); return crypto.Keccak256Hash(at[:], make([]byte, 32)) },
		"addresses": func(i uint64) common.Hash { return common.BytesToHash(crypto.Keccak256(slot(i).Bytes())[12:]) },
	} {
		taken := make(map[[2]uint64]bool)
		for i := range uint64(keys) {
			shard, place := placeOf(key(i))
			taken[[2]uint64{shard, place}] = true
		}
		if len(taken) < keys*8/10 { // of random keys 0.88 have a place of their own
			t.Errorf("%s: %d keys have %d places", name, keys, len(taken))
		}
	}
}
