package blockhash

import (
	"fmt"

	starkcurve "github.com/consensys/gnark-crypto/ecc/stark-curve"
	"github.com/consensys/gnark-crypto/ecc/stark-curve/fp"
)

// pedersen is the Pedersen hash of two elements: the x coordinate of the sum of a fixed point
// and of multiples of four others, given by parts of the operands.
//
// gnark-crypto's pedersen-hash computes the same function, but fills its tables whenever a
// program that links it starts, which takes a third of a second. The tables here are filled on
// first use. They hold affine points and are indexed by bytes instead of nibbles, so a hash
// needs half as many and cheaper additions.
type pedersen struct {
	shift starkcurve.G1Jac
	// table holds the multiple to add, by operand, byte (lowest first) and value of the byte.
	// The lowest 248 bits of an operand multiply one point, the highest four bits another.
	table [2][fp.Bytes][256]starkcurve.G1Affine
}

// The points in Starknet's specification. P0 is fixed; the operands' lower bits multiply P1 and
// P3, their highest bits P2 and P4.
const (
	pedersenP0X = "0x49ee3eba8c1600700ee1b87eb599f16716b0b1022947733551fde4050ca6804"
	pedersenP0Y = "0x3ca0cfe4b3bc6ddf346d49d06ea0ed34e621062c0e056c1d0405d266e10268a"
	pedersenP1X = "0x234287dcbaffe7f969c748655fca9e58fa8120b6d56eb0c1080d17957ebe47b"
	pedersenP1Y = "0x3b056f100f96fb21e889527d41f4e39940135dd7a6c94cc6ed0268ee89e5615"
	pedersenP2X = "0x4fa56f376c83db33f9dab2656558f3399099ec1de5e3018b7a6932dba8aa378"
	pedersenP2Y = "0x3fa0984c931c9e38113e0c0e47e4401562761f92a7a23b45168f4e80ff5b54d"
	pedersenP3X = "0x4ba4cc166be8dec764910f75b45f74b40c690c74709e90f3aa372f0bd2d6997"
	pedersenP3Y = "0x40301cf5c1751f4b971e46c4ede85fcac5c59a5ce5ae7c48151f27b24b219c"
	pedersenP4X = "0x54302dcb0e6cc1c6e44cca8f61a63bb2ca65048d53fb325d36ff12c49a58202"
	pedersenP4Y = "0x1b77b3e37d13504b348046268d8ae25ce98ad783c25561a879dcc77e99c2426"
)

func newPedersen() *pedersen {
	p := new(pedersen)
	p.shift = curvePoint(pedersenP0X, pedersenP0Y)
	low := [2]starkcurve.G1Jac{curvePoint(pedersenP1X, pedersenP1Y), curvePoint(pedersenP3X, pedersenP3Y)}
	high := [2]starkcurve.G1Jac{curvePoint(pedersenP2X, pedersenP2Y), curvePoint(pedersenP4X, pedersenP4Y)}
	for operand := range p.table {
		base := low[operand]
		for i := range p.table[operand] {
			if i == fp.Bytes-1 {
				base = high[operand]
			}
			multiples := make([]starkcurve.G1Jac, 256)
			for n := 1; n < len(multiples); n++ {
				multiples[n] = multiples[n-1]
				multiples[n].AddAssign(&base)
			}
			base.AddAssign(&multiples[255]) // the value of the next byte's lowest bit
			copy(p.table[operand][i][:], starkcurve.BatchJacobianToAffineG1(multiples))
		}
	}
	return p
}

// curvePoint returns one of the points above. A typing error would yield a point that is not on the curve.
func curvePoint(x, y string) starkcurve.G1Jac {
	var point starkcurve.G1Affine
	_, errX := point.X.SetString(x)
	_, errY := point.Y.SetString(y)
	if errX != nil || errY != nil || !point.IsOnCurve() {
		panic(fmt.Sprintf("blockhash: %s, %s is not on the curve", x, y))
	}
	var jacobian starkcurve.G1Jac
	jacobian.FromAffine(&point)
	return jacobian
}

// pair returns the hash of two elements.
func (p *pedersen) pair(a, b *fp.Element) fp.Element {
	sum := p.shift
	for operand, element := range [2]*fp.Element{a, b} {
		for i, value := range element.Bytes() { // highest first
			if value != 0 {
				sum.AddMixed(&p.table[operand][fp.Bytes-1-i][value])
			}
		}
	}
	var x fp.Element
	x.Inverse(&sum.Z).Square(&x)
	return *x.Mul(&x, &sum.X)
}

// many returns the hash of a list of elements: they are hashed in a chain that begins with 0 and
// ends with their number.
func (p *pedersen) many(elements ...fp.Element) fp.Element {
	var hash fp.Element
	for i := range elements {
		hash = p.pair(&hash, &elements[i])
	}
	length := fp.NewElement(uint64(len(elements)))
	return p.pair(&hash, &length)
}
