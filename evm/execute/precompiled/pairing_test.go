package precompiled

import (
	"bytes"
	"fmt"
	"math/big"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bn254"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// bn254Input returns a·G and b·H on BN254 as the contract reads them.
func bn254Input(a, b int64) []byte {
	var p bn254.G1Affine
	var q bn254.G2Affine
	_, _, g, h := bn254.Generators()
	p.ScalarMultiplication(&g, big.NewInt(a))
	q.ScalarMultiplication(&h, big.NewInt(b))
	var out []byte
	for _, c := range [][32]byte{p.X.Bytes(), p.Y.Bytes(), q.X.A1.Bytes(), q.X.A0.Bytes(), q.Y.A1.Bytes(), q.Y.A0.Bytes()} {
		out = append(out, c[:]...)
	}
	return out
}

// bls12381Input is bn254Input for BLS12-381.
func bls12381Input(a, b int64) []byte {
	var p bls12381.G1Affine
	var q bls12381.G2Affine
	_, _, g, h := bls12381.Generators()
	p.ScalarMultiplication(&g, big.NewInt(a))
	q.ScalarMultiplication(&h, big.NewInt(b))
	var out []byte
	for _, c := range [][48]byte{p.X.Bytes(), p.Y.Bytes(), q.X.A0.Bytes(), q.X.A1.Bytes(), q.Y.A0.Bytes(), q.Y.A1.Bytes()} {
		out = append(append(out, make([]byte, 16)...), c[:]...)
	}
	return out
}

// A product of pairings in parts is that of go-ethereum, with the same errors. It ends when the client has left.
func TestPairings(t *testing.T) {
	for name, curve := range map[string]struct {
		address common.Address
		rules   params.Rules
		input   func(a, b int64) []byte
		one     func() pairing
	}{
		"BN254":     {common.Address{19: 8}, params.Rules{IsIstanbul: true}, bn254Input, newBN254Pairing},
		"BLS12-381": {common.Address{19: 0x0f}, params.Rules{IsIstanbul: true, IsBerlin: true, IsCancun: true, IsPrague: true}, bls12381Input, newBLS12381Pairing},
	} {
		t.Run(name, func(t *testing.T) {
			theirs := vm.PrecompiledContractsPrague[curve.address]
			item := len(curve.input(1, 1))
			join := func(pairs ...[]byte) []byte { return bytes.Join(pairs, nil) }
			zero, pair, inverse := make([]byte, item), curve.input(2, 3), curve.input(-6, 1)
			inputs := map[string][]byte{
				"one":                 join(pair, inverse, curve.input(5, 7), curve.input(35, -1), zero),
				"not one":             join(pair, inverse, curve.input(5, 7), curve.input(34, -1)),
				"infinity only":       join(zero, zero, zero, zero),
				"infinity on a side":  join(append(bytes.Clone(pair[:item/3]), zero[item/3:]...), append(bytes.Clone(zero[:item/3]), pair[item/3:]...), pair, inverse),
				"part of a pair":      join(pair, pair, pair)[:3*item-1],
				"none":                nil,
				"one pair":            pair,
				"a point at infinity": zero,
			}
			valid := join(pair, pair, pair, pair, pair)
			for at := 0; at < item; at += 7 { // it makes a coordinate too large, a point another one, or padding not zero
				wrong := bytes.Clone(valid)
				wrong[3*item+at] ^= 0xff
				inputs[fmt.Sprintf("byte %d is wrong", at)] = wrong
			}
			for name, input := range inputs {
				want, wantErr := theirs.Run(input)
				for _, pairs := range []int{1, 3, 10} {
					ours := &interruptiblePairing{theirs, &stopper{t.Context()}, pairs, item, curve.one}
					if got, err := ours.Run(input); !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
						t.Errorf("%s, %d at once: %x, %v, expected %x, %v", name, pairs, got, err, want, wantErr)
					}
				}
			}
			endsEarly(t, curve.rules, curve.address, bytes.Repeat(pair, 17_000))
		})
	}
}
