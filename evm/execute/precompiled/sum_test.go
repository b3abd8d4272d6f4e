package precompiled

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// A sum in parts is that of go-ethereum. It ends when the client has left.
func TestSumOfPoints(t *testing.T) {
	contracts := vm.PrecompiledContractsPrague
	random := rand.New(rand.NewPCG(1, 2))
	for _, test := range []struct{ add, sum, mapping, coordinate, point int }{{0x0b, 0x0c, 0x10, 64, 128}, {0x0d, 0x0e, 0x11, 128, 256}} {
		at := func(n int) common.Address { return common.Address{19: byte(n)} }
		theirs := contracts[at(test.sum)]
		var input []byte
		for range 7 {
			coordinate := make([]byte, test.coordinate)
			coordinate[len(coordinate)-1] = byte(random.Uint32())
			point, err := contracts[at(test.mapping)].Run(coordinate)
			if err != nil {
				t.Fatal(err)
			}
			input = append(append(input, point...), randomBytes(random, 32)...)
		}
		item := test.point + 32
		for _, points := range []int{1, 2, 3, 6, 7, 100} {
			ours := &interruptibleSum{theirs, &stopper{t.Context()}, points, contracts[at(test.add)], item}
			wrong := bytes.Clone(input)
			wrong[5*item] = 1
			for name, input := range map[string][]byte{"points": input, "a wrong point": wrong, "part of a point": input[:len(input)-1], "none": nil} {
				want, wantErr := theirs.Run(input)
				if got, err := ours.Run(input); !bytes.Equal(got, want) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
					t.Errorf("%s, %d at once: %x, %v, expected %x, %v", name, points, got, err, want, wantErr)
				}
			}
		}
		endsEarly(t, params.Rules{IsPrague: true}, at(test.sum), bytes.Repeat(input, 10_000))
	}
}
