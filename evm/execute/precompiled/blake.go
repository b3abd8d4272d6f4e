package precompiled

import (
	"encoding/binary"
	"math/bits"

	"github.com/ethereum/go-ethereum/core/vm"
)

const (
	// plainRounds is how many rounds of BLAKE2F go-ethereum computes, faster but without
	// an interruption: they take a few milliseconds at most.
	plainRounds = 1 << 17
	// blakeCheck is how many rounds are computed between two looks at the context.
	blakeCheck = 1 << 16
)

// interruptibleBlake is BLAKE2F (EIP-152) for calls. A client chooses the number of rounds:
// at a unit of gas for each, one call takes seconds.
type interruptibleBlake struct {
	vm.PrecompiledContract
	*stopper
}

// blakeInput is the length of BLAKE2F's input: rounds, h, m, t and the final flag.
const blakeInput = 4 + 8*8 + 16*8 + 2*8 + 1

// Run implements vm.PrecompiledContract. Invalid input is left to go-ethereum.
func (b *interruptibleBlake) Run(input []byte) ([]byte, error) {
	if len(input) != blakeInput || input[blakeInput-1] > 1 || binary.BigEndian.Uint32(input) <= plainRounds {
		return b.PrecompiledContract.Run(input)
	}
	rounds, words := uint64(binary.BigEndian.Uint32(input)), input[4:]
	var h [8]uint64
	var m [16]uint64
	var t [2]uint64
	for _, to := range [][]uint64{h[:], m[:], t[:]} {
		for i := range to {
			to[i] = binary.LittleEndian.Uint64(words[8*i:])
		}
		words = words[8*len(to):]
	}
	v := blakeState(&h, t, words[0] == 1)
	for round := uint64(0); round < rounds; round++ {
		if round%blakeCheck == 0 && b.ended() {
			return nil, errInterrupted
		}
		blakeRound(v, &m, &blakeOrder[round%uint64(len(blakeOrder))])
	}
	var out []byte
	for i := range h {
		out = binary.LittleEndian.AppendUint64(out, h[i]^v[i]^v[i+8])
	}
	return out, nil
}

// blakeIV is the initial state of BLAKE2b, RFC 7693 section 2.6.
var blakeIV = [8]uint64{
	0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
	0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
}

// blakeOrder is the order in which each round takes the words of a message, RFC 7693
// section 2.7.
var blakeOrder = [10][16]uint8{
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
}

// blakeState returns the working state before the first round.
func blakeState(h *[8]uint64, t [2]uint64, final bool) *[16]uint64 {
	var v [16]uint64
	copy(v[:8], h[:])
	copy(v[8:], blakeIV[:])
	v[12] ^= t[0]
	v[13] ^= t[1]
	if final {
		v[14] = ^v[14]
	}
	return &v
}

// blakeRound mixes the columns and then the diagonals of the state.
func blakeRound(v, m *[16]uint64, order *[16]uint8) {
	v[0], v[4], v[8], v[12] = blakeMix(v[0], v[4], v[8], v[12], m[order[0]&15], m[order[1]&15])
	v[1], v[5], v[9], v[13] = blakeMix(v[1], v[5], v[9], v[13], m[order[2]&15], m[order[3]&15])
	v[2], v[6], v[10], v[14] = blakeMix(v[2], v[6], v[10], v[14], m[order[4]&15], m[order[5]&15])
	v[3], v[7], v[11], v[15] = blakeMix(v[3], v[7], v[11], v[15], m[order[6]&15], m[order[7]&15])
	v[0], v[5], v[10], v[15] = blakeMix(v[0], v[5], v[10], v[15], m[order[8]&15], m[order[9]&15])
	v[1], v[6], v[11], v[12] = blakeMix(v[1], v[6], v[11], v[12], m[order[10]&15], m[order[11]&15])
	v[2], v[7], v[8], v[13] = blakeMix(v[2], v[7], v[8], v[13], m[order[12]&15], m[order[13]&15])
	v[3], v[4], v[9], v[14] = blakeMix(v[3], v[4], v[9], v[14], m[order[14]&15], m[order[15]&15])
}

// blakeMix is the function G of RFC 7693, section 3.1.
func blakeMix(a, b, c, d, x, y uint64) (uint64, uint64, uint64, uint64) {
	a += b + x
	d = bits.RotateLeft64(d^a, -32)
	c += d
	b = bits.RotateLeft64(b^c, -24)
	a += b + y
	d = bits.RotateLeft64(d^a, -16)
	c += d
	b = bits.RotateLeft64(b^c, -63)
	return a, b, c, d
}
