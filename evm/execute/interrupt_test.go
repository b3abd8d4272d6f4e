package execute

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

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

// A call of BLAKE2F with all the gas there is ends when its client has left.
func TestBlakeIsInterrupted(t *testing.T) {
	input := blakeCall(1<<32-1, rand.New(rand.NewPCG(1, 2)))
	for name, options := range map[string]CallOptions{
		"plain":    {},
		"override": {State: StateOverrides{contract: {Nonce: new(uint64)}}},
	} {
		ctx, leave := context.WithCancel(t.Context())
		s := newCaller(t).newSimulation(ctx, newWorld().at())
		s.gasCap = 1 << 40
		ended := make(chan error, 1)
		go func() {
			ended <- s.do(options, func(s *simulation) error {
				msg, err := s.message(&Message{To: &blakeAddress, Data: input, Gas: &s.gasCap})
				if err == nil {
					_, err = s.run(msg, nil)
				}
				return err
			})
		}()
		select {
		case err := <-ended:
			t.Fatalf("%s: ended before the client left: %v", name, err)
		case <-time.After(100 * time.Millisecond):
		}
		leave()
		select {
		case err := <-ended:
			if !errors.Is(err, errAborted) {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(20 * time.Second): // without an interruption it takes half a minute or more
			t.Fatalf("%s: still running", name)
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

func BenchmarkContracts(b *testing.B) {
	rules := params.Rules{IsBerlin: true, IsCancun: true, IsPrague: true}
	for b.Loop() {
		contractsFor(b.Context(), rules).release()
	}
}
