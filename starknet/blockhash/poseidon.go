package blockhash

import (
	"crypto/sha256"
	"strconv"

	"github.com/consensys/gnark-crypto/ecc/stark-curve/fp"
)

// Parameters of the permutation: in full rounds, half of them at either end, every element is
// cubed; in the partial rounds between them only the last.
const (
	poseidonWidth         = 3
	poseidonFullRounds    = 8
	poseidonPartialRounds = 83
	poseidonRounds        = poseidonFullRounds + poseidonPartialRounds
)

// poseidon is Starknet's Poseidon hash: a sponge over the Hades permutation of three elements
// with a rate of two.
type poseidon struct {
	keys [poseidonRounds][poseidonWidth]fp.Element // added before each round
}

// newPoseidon computes the round keys by their definition: SHA-256 of "Hades" followed by the
// key's index in decimal, as an element.
func newPoseidon() *poseidon {
	p := new(poseidon)
	for round := range p.keys {
		for i := range p.keys[round] {
			digest := sha256.Sum256(strconv.AppendInt([]byte("Hades"), int64(poseidonWidth*round+i), 10))
			p.keys[round][i].SetBytes(digest[:])
		}
	}
	return p
}

func (p *poseidon) permute(state *[poseidonWidth]fp.Element) {
	for round := range p.keys {
		full := round < poseidonFullRounds/2 || round >= poseidonRounds-poseidonFullRounds/2
		for i := range state {
			state[i].Add(&state[i], &p.keys[round][i])
			if full || i == poseidonWidth-1 {
				var square fp.Element
				square.Square(&state[i])
				state[i].Mul(&state[i], &square)
			}
		}
		mix(state)
	}
}

// mix multiplies the state by the matrix (3 1 1; 1 -1 1; 1 1 -2).
func mix(state *[poseidonWidth]fp.Element) {
	var sum, twice fp.Element
	sum.Add(&state[0], &state[1]).Add(&sum, &state[2])
	state[0].Add(&sum, twice.Double(&state[0]))
	state[1].Sub(&sum, twice.Double(&state[1]))
	twice.Double(&state[2])
	state[2].Sub(sum.Sub(&sum, &twice), &state[2])
}

// pair returns the hash of two elements.
func (p *poseidon) pair(a, b *fp.Element) fp.Element {
	state := [poseidonWidth]fp.Element{*a, *b, fp.NewElement(2)}
	p.permute(&state)
	return state[0]
}

// many returns the hash of a list of elements. They are padded with a 1 and, if necessary, a 0
// to an even number and absorbed in pairs.
func (p *poseidon) many(elements ...fp.Element) fp.Element {
	var state [poseidonWidth]fp.Element
	for len(elements) > 1 {
		state[0].Add(&state[0], &elements[0])
		state[1].Add(&state[1], &elements[1])
		p.permute(&state)
		elements = elements[2:]
	}
	one := fp.One()
	if len(elements) == 1 {
		state[0].Add(&state[0], &elements[0])
		state[1].Add(&state[1], &one)
	} else {
		state[0].Add(&state[0], &one)
	}
	p.permute(&state)
	return state[0]
}
