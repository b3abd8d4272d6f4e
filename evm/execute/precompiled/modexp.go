package precompiled

import (
	"math/big"
	"math/bits"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
)

const (
	// modexpWork is the work between two looks at the context, some ten milliseconds. The unit is
	// the product of two words; modexpStep is the rest of what a step takes.
	modexpWork = 1 << 22
	modexpStep = 16
	// plainModexp is how many times this work is left to go-ethereum, which needs half the time
	// but cannot be interrupted.
	plainModexp = 4
	// longModulus is the number of words of a modulus from which on [big.Int.Mul], whose time
	// grows more slowly, is faster than Montgomery's method.
	longModulus = 512
)

// interruptibleModexp is MODEXP (EIP-198) for calls under the rules before Osaka, which limits
// operands to 1024 bytes. Before, one with 600 million gas takes seven seconds.
type interruptibleModexp struct {
	vm.PrecompiledContract
	*stopper
	work int // modexpWork
}

// modexpHeader is the length of the three lengths with which the input of MODEXP begins.
const modexpHeader = 3 * common.HashLength

// Run implements vm.PrecompiledContract.
func (m *interruptibleModexp) Run(input []byte) ([]byte, error) {
	lengths := common.RightPadBytes(input[:min(len(input), modexpHeader)], modexpHeader)
	baseLen, ok1 := length(lengths[:32])
	expLen, ok2 := length(lengths[32:64])
	modLen, ok3 := length(lengths[64:])
	ends, carry := bits.Add64(baseLen, expLen, 0)
	if !ok1 || !ok2 || !ok3 || carry != 0 || baseLen == 0 && modLen == 0 {
		return m.PrecompiledContract.Run(input)
	}
	operands := input[min(len(input), modexpHeader):]
	if ends >= uint64(len(operands)) {
		// The modulus is zero, and so is the result. go-ethereum would make an exponent of
		// expLen bytes first: 8 bytes of memory for each 3 gas since Berlin, 5 for each before.
		return make([]byte, modLen), nil
	}
	exp := operands[baseLen:ends]
	for len(exp) > 0 && exp[0] == 0 {
		exp = exp[1:]
	}
	words := (max(baseLen, modLen) + 7) / 8
	if work := 8 * uint64(len(exp)) * (words*words + modexpStep); work <= uint64(plainModexp*m.work) {
		return m.PrecompiledContract.Run(input)
	}
	base := new(big.Int).SetBytes(operands[:baseLen])
	mod := new(big.Int).SetBytes(common.RightPadBytes(operands[ends:min(ends+modLen, uint64(len(operands)))], int(modLen)))
	if mod.Sign() == 0 {
		return make([]byte, modLen), nil
	}
	power, err := m.power(base.Mod(base, mod), exp, mod)
	if err != nil {
		return nil, err
	}
	return power.FillBytes(make([]byte, modLen)), nil
}

// length returns a length in the input of MODEXP, and whether there could be so much.
func length(word []byte) (uint64, bool) {
	n := new(big.Int).SetBytes(word)
	return n.Uint64(), n.IsUint64()
}

// power returns base to the power of exp modulo mod, which is not zero. It takes the exponent in
// parts, from the first on:
//
//	base^0x1234 = (base^0x12)^0x100 · base^0x34
func (m *interruptibleModexp) power(base *big.Int, exp []byte, mod *big.Int) (*big.Int, error) {
	words := len(mod.Bits())
	if words >= longModulus {
		return m.longPower(base, exp, mod)
	}
	part := max(1, m.work/(8*(words*words+modexpStep))) // bytes
	result := new(big.Int).Mod(big.NewInt(1), mod)
	shift, factor := new(big.Int), new(big.Int)
	for len(exp) > 0 {
		if m.ended() {
			return nil, errInterrupted
		}
		part = min(part, len(exp))
		result.Exp(result, shift.Lsh(big.NewInt(1), uint(8*part)), mod)
		factor.Exp(base, factor.SetBytes(exp[:part]), mod)
		result.Mod(result.Mul(result, factor), mod)
		exp = exp[part:]
	}
	return result, nil
}

// longPower is power for a modulus that is so long that a product takes up to a tenth of a second.
func (m *interruptibleModexp) longPower(base *big.Int, exp []byte, mod *big.Int) (*big.Int, error) {
	result := new(big.Int).Mod(big.NewInt(1), mod)
	product, quotient := new(big.Int), new(big.Int)
	times := func(factor *big.Int) {
		product.Mul(result, factor)
		quotient.QuoRem(product, mod, result)
	}
	for _, eight := range exp {
		for bit := 7; bit >= 0; bit-- {
			if m.ended() {
				return nil, errInterrupted
			}
			times(result)
			if eight>>bit&1 == 1 {
				times(base)
			}
		}
	}
	return result, nil
}
