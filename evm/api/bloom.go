package api

import (
	"bytes"
	"encoding/binary"

	"ashlar/evm/archive"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// rememberedBits is the size of a bloomMaker's cache; a power of two.
const rememberedBits = 64

// bloomMaker adds logs to bloom filters. The logs of a block share addresses and topics, so
// it caches the bits of recent values instead of hashing them again. The cache is
// direct-mapped, by a value's last byte and length. A bloomMaker belongs to one goroutine;
// its zero value is ready.
type bloomMaker struct {
	hasher     hasher
	remembered [rememberedBits]bloomBits
}

// bloomBits are the three bits that a value sets, as a cache entry.
type bloomBits struct {
	value [common.HashLength]byte
	size  int // length of the value; 0 if the entry is empty
	bits  [3]uint16
}

// add adds a log's address and topics to a filter.
func (m *bloomMaker) add(bloom *types.Bloom, log *archive.Log) {
	m.addValue(bloom, log.Address[:])
	for topics := log.Topics; len(topics) > 0; topics = topics[common.HashLength:] {
		m.addValue(bloom, topics[:common.HashLength])
	}
}

// addValue adds an address or a topic.
func (m *bloomMaker) addValue(bloom *types.Bloom, value []byte) {
	r := &m.remembered[(int(value[len(value)-1])+len(value)/4)%rememberedBits]
	if r.size != len(value) || !bytes.Equal(r.value[:r.size], value) {
		r.size = copy(r.value[:], value)
		hash := m.hasher.hash(value)
		for i := range r.bits {
			r.bits[i] = binary.BigEndian.Uint16(hash[2*i:]) % types.BloomBitLength
		}
	}
	for _, bit := range r.bits {
		bloom[types.BloomByteLength-1-bit/8] |= 1 << (bit % 8)
	}
}
