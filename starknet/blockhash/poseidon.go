package blockhash

import (
	"crypto/sha256"
	"strconv"

	"github.com/consensys/gnark-crypto/ecc/stark-curve/fp"
)

// The shape of the permutation: as many rounds that raise all of the state to the
// third power, half of them at either end, and as many between that raise only
// its last element.
const (
	poseidonWidth         = 3
	poseidonFullRounds    = 8
	poseidonPartialRounds = 83
	poseidonRounds        = poseidonFullRounds + poseidonPartialRounds
)

// poseidon is the Poseidon hash that Starknet uses: the Hades permutation over
// three elements, two of which take in what is hashed.
type poseidon struct {
	keys [poseidonRounds][poseidonWidth]fp.Element // added before each round
}

// newPoseidon derives the round keys from their definition: SHA-256 of "Hades"
// and the key's decimal number, as an element.
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

// mix multiplies the state with the matrix (3 1 1; 1 -1 1; 1 1 -2).
func mix(state *[poseidonWidth]fp.Element) {
	var sum, twice fp.Element
	sum.Add(&state[0], &state[1]).Add(&sum, &state[2])
	state[0].Add(&sum, twice.Double(&state[0]))
	state[1].Sub(&sum, twice.Double(&state[1]))
	twice.Double(&state[2])
	state[2].Sub(sum.Sub(&sum, &twice), &state[2])
}

// pair is the hash of two elements.
func (p *poseidon) pair(a, b *fp.Element) fp.Element {
	state := [poseidonWidth]fp.Element{*a, *b, fp.NewElement(2)}
	p.permute(&state)
	return state[0]
}

// many is the hash of any number of elements, which are taken in by two, after a
// one and as many zeros have been added as make their number even.
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
