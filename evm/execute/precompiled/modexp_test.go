package precompiled

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// modexpAddress is where MODEXP is.
var modexpAddress = common.Address{19: 5}

// modexpCall returns input for MODEXP. The exponent is said to have expLen bytes.
func modexpCall(base, exp, mod []byte, expLen int) []byte {
	input := make([]byte, modexpHeader)
	for i, n := range []int{len(base), expLen, len(mod)} {
		binary.BigEndian.PutUint64(input[32*i+24:], uint64(n))
	}
	return bytes.Join([][]byte{input, base, exp, mod}, nil)
}

func randomBytes(random *rand.Rand, n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(random.Uint32())
	}
	return out
}

// Powers in parts are those of go-ethereum, for moduli of all lengths, even and odd ones.
func TestModexpIsTheSame(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	theirs := vm.PrecompiledContractsBerlin[modexpAddress]
	ours := &interruptibleModexp{theirs, &stopper{t.Context()}, 1 << 10}
	inputs := map[string][]byte{
		"empty":         nil,
		"short lengths": make([]byte, 40),
		"no operands":   modexpCall(nil, nil, nil, 100),
		"no modulus":    modexpCall([]byte{2}, []byte{3}, nil, 1),
		"too long":      bytes.Repeat([]byte{0xff}, 96),
		"cut modulus":   modexpCall([]byte{2}, randomBytes(random, 1000), []byte{7, 9, 5}, 1000)[:modexpHeader+1+1000+1],
		"zero modulus":  modexpCall([]byte{2}, randomBytes(random, 1000), make([]byte, 9), 1000),
		"one":           modexpCall([]byte{2}, randomBytes(random, 1000), []byte{1}, 1000),
		"zero base":     modexpCall(make([]byte, 3), randomBytes(random, 1000), []byte{1, 5}, 1000),
		"long base":     modexpCall(randomBytes(random, 3000), randomBytes(random, 80), randomBytes(random, 40), 80),
		"zeros first":   modexpCall([]byte{2}, append(make([]byte, 1000), 9), []byte{0, 0, 77}, 1000+1),
	}
	for words, expLen := range map[int]int{1: 1000, 2: 500, 4: 400, 7: 200, 128: 20, 511: 3, 512: 2, 513: 2, 700: 2} {
		for _, last := range []byte{0, 1} {
			mod := randomBytes(random, 8*words-random.IntN(8))
			mod[len(mod)-1] = mod[len(mod)-1]&^1 | last
			exp := randomBytes(random, expLen)
			exp[0] |= 1
			inputs[fmt.Sprintf("%d words, %d last", words, last)] = modexpCall(randomBytes(random, 8*words), exp, mod, expLen)
		}
	}
	for name, input := range inputs {
		want, wantErr := theirs.Run(input)
		if got, err := ours.Run(input); !bytes.Equal(got, want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%s: %x, %v, expected %x, %v", name, got, err, want, wantErr)
		}
	}
}

// An exponent that the input does not have takes no memory: its modulus is zero.
func TestModexpOfMissingOperandsTakesNoMemory(t *testing.T) {
	const expLen = 1 << 28 // at 107 million gas since Byzantium
	input := modexpCall([]byte{3}, nil, nil, expLen)
	input[95] = 5 // bytes of the modulus
	set := For(t.Context(), params.Rules{IsByzantium: true})
	defer set.Release()
	// The least of some attempts: other goroutines of the process allocate beside one.
	took := uint64(math.MaxUint64)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := set.Contracts[modexpAddress].Run(input)
		runtime.ReadMemStats(&after)
		if err != nil || !bytes.Equal(out, make([]byte, 5)) {
			t.Fatalf("%x, %v, expected 5 zeros", out, err)
		}
		took = min(took, after.TotalAlloc-before.TotalAlloc)
	}
	if took > 1<<20 {
		t.Errorf("took %d MiB, expected less than 1", took>>20)
	}
}

// endsEarly runs a contract until its caller leaves, for whom it must not finish.
func endsEarly(t *testing.T, rules params.Rules, address common.Address, input []byte) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	set := For(ctx, rules)
	ended := make(chan error, 1)
	go func() {
		_, err := set.Contracts[address].Run(input)
		ended <- err
	}()
	select {
	case err := <-ended:
		t.Fatalf("ended before the client left: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	leave()
	if err := <-ended; !errors.Is(err, errInterrupted) {
		t.Errorf("%v, expected that it is interrupted", err)
	}
}

// Powers that take ten seconds and more end when the client has left.
func TestModexpIsInterrupted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for name, size := range map[string]struct{ modulus, exponent int }{"many steps": {24, 8 << 20}, "long steps": {40_000, 30}} {
		t.Run(name, func(t *testing.T) {
			mod, exp := randomBytes(random, size.modulus), randomBytes(random, size.exponent)
			mod[len(mod)-1] |= 1
			exp[0] |= 1
			endsEarly(t, params.Rules{IsByzantium: true, IsBerlin: true}, modexpAddress, modexpCall(randomBytes(random, size.modulus), exp, mod, len(exp)))
		})
	}
}
