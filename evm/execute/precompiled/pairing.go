package precompiled

import (
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
)

// pairedAtOnce is how many pairs are paired between two looks at the context, in some ten milliseconds.
const pairedAtOnce = 32

// interruptiblePairing is BN254_PAIRING (EIP-197) or BLS12_PAIRING_CHECK (EIP-2537), which say whether
// the product of the pairings of all pairs is one. With as much gas as a call may have, one takes seconds.
//
// A pairing is a Miller loop and then a power. As the power of a product is the product of the powers,
// the loops of all parts are multiplied first:
//
//	(loop(p1,q1) · loop(p2,q2))^n · loop(p3,q3)^n = (loop(p1,q1) · loop(p2,q2) · loop(p3,q3))^n
type interruptiblePairing struct {
	vm.PrecompiledContract
	*stopper
	pairs int            // pairedAtOnce
	item  int            // bytes of a pair
	one   func() pairing // a new product of no pairs
}

// pairing is a product of Miller loops.
type pairing interface {
	// multiply multiplies the product by the loops of pairs. It returns false if one of them is invalid.
	multiply(pairs []byte) bool
	// isOne reports whether the product of the pairings is one.
	isOne() bool
}

// Run implements vm.PrecompiledContract.
func (p *interruptiblePairing) Run(input []byte) ([]byte, error) {
	part := p.pairs * p.item
	if len(input) <= part || len(input)%p.item != 0 {
		return p.PrecompiledContract.Run(input)
	}
	product := p.one()
	for len(input) > 0 {
		if p.ended() {
			return nil, errInterrupted
		}
		pairs := input[:min(part, len(input))]
		if !product.multiply(pairs) {
			return p.PrecompiledContract.Run(pairs) // which says why
		}
		input = input[len(pairs):]
	}
	out := make([]byte, common.HashLength)
	if product.isOne() {
		out[len(out)-1] = 1
	}
	return out, nil
}

// coordinate is an element of a curve's field.
type coordinate interface{ SetBytesCanonical([]byte) error }

// setCoordinates reads coordinates, each behind some bytes that must be zero. It returns false if one is invalid.
func setCoordinates(input []byte, padding int, to ...coordinate) bool {
	size := len(input) / len(to)
	for _, c := range to {
		for _, b := range input[:padding] {
			if b != 0 {
				return false
			}
		}
		if c.SetBytesCanonical(input[padding:size]) != nil {
			return false
		}
		input = input[size:]
	}
	return true
}

// bn254Pair is the length of a pair of points on BN254.
const bn254Pair = 6 * 32

// bn254Pairing is a [pairing] on BN254.
type bn254Pairing struct{ loops bn254.GT }

func newBN254Pairing() pairing {
	p := new(bn254Pairing)
	p.loops.SetOne()
	return p
}

func (p *bn254Pairing) multiply(pairs []byte) bool {
	left, right := make([]bn254.G1Affine, len(pairs)/bn254Pair), make([]bn254.G2Affine, len(pairs)/bn254Pair)
	for i := range left {
		l, r := &left[i], &right[i]
		if !setCoordinates(pairs[:bn254Pair], 0, &l.X, &l.Y, &r.X.A1, &r.X.A0, &r.Y.A1, &r.Y.A0) || !l.IsInSubGroup() || !r.IsInSubGroup() {
			return false
		}
		pairs = pairs[bn254Pair:]
	}
	loops, err := bn254.MillerLoop(left, right)
	p.loops.Mul(&p.loops, &loops)
	return err == nil
}

func (p *bn254Pairing) isOne() bool {
	product := bn254.FinalExponentiation(&p.loops)
	return product.IsOne()
}

// bls12381Pair is the length of a pair of points on BLS12-381, whose coordinates have 48 of 64 bytes.
const bls12381Pair = 6 * 64

// bls12381Pairing is a [pairing] on BLS12-381.
type bls12381Pairing struct{ loops bls12381.GT }

func newBLS12381Pairing() pairing {
	p := new(bls12381Pairing)
	p.loops.SetOne()
	return p
}

func (p *bls12381Pairing) multiply(pairs []byte) bool {
	left, right := make([]bls12381.G1Affine, len(pairs)/bls12381Pair), make([]bls12381.G2Affine, len(pairs)/bls12381Pair)
	for i := range left {
		l, r := &left[i], &right[i]
		if !setCoordinates(pairs[:bls12381Pair], 16, &l.X, &l.Y, &r.X.A0, &r.X.A1, &r.Y.A0, &r.Y.A1) || !l.IsInSubGroup() || !r.IsInSubGroup() {
			return false
		}
		pairs = pairs[bls12381Pair:]
	}
	loops, err := bls12381.MillerLoop(left, right)
	p.loops.Mul(&p.loops, &loops)
	return err == nil
}

func (p *bls12381Pairing) isOne() bool {
	product := bls12381.FinalExponentiation(&p.loops)
	return product.IsOne()
}
