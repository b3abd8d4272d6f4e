package precompiled

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// blakeAddress is where BLAKE2F is.
var blakeAddress = common.Address{19: 9}

// blakeCall returns input for BLAKE2F.
func blakeCall(rounds uint32, random *rand.Rand) []byte {
	input := make([]byte, blakeInput)
	for i := range input {
		input[i] = byte(random.Uint32())
	}
	binary.BigEndian.PutUint32(input, rounds)
	input[blakeInput-1] = byte(random.IntN(2))
	return input
}

// Our rounds compute what go-ethereum's do, and leave invalid input to them.
func TestBlakeIsTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	theirs := vm.PrecompiledContractsIstanbul[blakeAddress]
	ours := &interruptibleBlake{theirs, &stopper{t.Context()}}
	inputs := [][]byte{nil, make([]byte, blakeInput+1)}
	for range 20 {
		inputs = append(inputs, blakeCall(plainRounds+1+random.Uint32N(3*blakeCheck), random), blakeCall(random.Uint32N(100), random))
	}
	invalid := blakeCall(plainRounds+1, random)
	invalid[blakeInput-1] = 2
	for _, input := range append(inputs, invalid) {
		want, wantErr := theirs.Run(input)
		if got, err := ours.Run(input); !bytes.Equal(got, want) || !errors.Is(err, wantErr) {
			t.Errorf("%x: %x, %v, expected %x, %v", input, got, err, want, wantErr)
		}
	}
}

func BenchmarkBlake(b *testing.B) {
	input := blakeCall(1_000_000, rand.New(rand.NewPCG(1, 2)))
	theirs := vm.PrecompiledContractsIstanbul[blakeAddress]
	for name, contract := range map[string]vm.PrecompiledContract{"theirs": theirs, "ours": &interruptibleBlake{theirs, &stopper{b.Context()}}} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := contract.Run(input); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkFor(b *testing.B) {
	rules := params.Rules{IsBerlin: true, IsCancun: true, IsPrague: true}
	for b.Loop() {
		For(b.Context(), rules).Release()
	}
}
