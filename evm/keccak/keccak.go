// Package keccak computes many Keccak-256 hashes together.
//
// Processors with AVX2 change four states of the hash function in less than twice the time of one.
// So the hashes of a block's trie nodes or transactions take half of the time that they take one
// after the other:
//
//	           state 0   state 1   state 2   state 3
//	step 1     a, 1/2    b, 1/1    c, 1/4    d, 1/1
//	step 2     a, 2/2    e, 1/2    c, 2/4    f, 1/1     inputs b and d have ended: e and f begin
//	step 3               e, 2/2    c, 3/4
//	step 4                         c, 4/4
//
// Each step absorbs one block of 136 bytes of each input.
package keccak

import (
	"encoding/binary"
	"sync"

	"github.com/cloudflare/circl/simd/keccakf1600"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

const (
	states = 4
	// rate is the number of bytes of an input that a state absorbs at a time.
	rate = 136
	// alonePart: an input with more than this part of all blocks would end long after the others,
	// with three states idle.
	alonePart = 3
)

// four reports whether four states together take less time than one after the other.
var four = keccakf1600.IsEnabledX4()

// Sum sets hashes to the Keccak-256 hashes of inputs. Both have the same length. It is safe for
// concurrent use.
func Sum(inputs [][]byte, hashes []common.Hash) {
	h := hashers.Get().(*hasher)
	defer hashers.Put(h)
	if !four {
		for i, input := range inputs {
			h.sumAlone(input, &hashes[i])
		}
		return
	}
	h.sum(inputs, hashes)
}

var hashers = sync.Pool{New: func() any {
	h := &hasher{alone: crypto.NewKeccakState()}
	h.words = h.states.Initialize(false)
	return h
}}

// hasher is memory for one call of [Sum].
type hasher struct {
	alone  crypto.KeccakState
	states keccakf1600.StateX4
	words  []uint64 // of states: word i of state s at i*4+s
	tail   [rate]byte
}

func (h *hasher) sumAlone(input []byte, hash *common.Hash) {
	h.alone.Reset()
	_, _ = h.alone.Write(input) // never fails
	_, _ = h.alone.Read(hash[:])
}

// absorbing is what one state absorbs.
type absorbing struct {
	rest []byte
	hash *common.Hash // of the input; nil: there is none
	last bool         // its last block has been absorbed
}

// sum is [Sum] with four states at a time.
func (h *hasher) sum(inputs [][]byte, hashes []common.Hash) {
	blocks := 0
	for _, input := range inputs {
		blocks += blocksOf(input)
	}
	var at [states]absorbing
	clear(h.words)
	busy, next := 0, 0
	begin := func(state int) {
		for ; next < len(inputs); next++ {
			if blocksOf(inputs[next]) <= blocks/alonePart {
				at[state] = absorbing{rest: inputs[next], hash: &hashes[next]}
				busy, next = busy+1, next+1
				return
			}
			h.sumAlone(inputs[next], &hashes[next])
		}
	}
	for state := range at {
		begin(state)
	}
	for busy > 0 {
		for state := range at {
			if at[state].hash != nil {
				h.absorb(state, &at[state])
			}
		}
		h.states.Permute()
		for state := range at {
			if at[state].last {
				h.squeeze(state, at[state].hash)
				at[state] = absorbing{}
				busy--
				begin(state)
			}
		}
	}
}

// blocksOf returns the number of blocks of an input. Its padding takes at least a byte.
func blocksOf(input []byte) int { return len(input)/rate + 1 }

// absorb adds the next block of an input to a state.
func (h *hasher) absorb(state int, a *absorbing) {
	block := a.rest
	if a.last = len(block) < rate; a.last {
		clear(h.tail[copy(h.tail[:], block):])
		h.tail[len(block)] = 0x01 // the padding of Keccak, before it became SHA-3
		h.tail[rate-1] |= 0x80
		block = h.tail[:]
	} else {
		a.rest = block[rate:]
	}
	block, words := block[:rate], h.words[state:][:(rate/8-1)*states+1]
	for i := range rate / 8 {
		words[i*states] ^= binary.LittleEndian.Uint64(block[i*8:])
	}
}

// squeeze takes the hash from a state, and clears the state.
func (h *hasher) squeeze(state int, hash *common.Hash) {
	words := h.words[state:]
	for i := range len(hash) / 8 {
		binary.LittleEndian.PutUint64(hash[i*8:], words[i*states])
	}
	for i := 0; i < len(words); i += states {
		words[i] = 0
	}
}
