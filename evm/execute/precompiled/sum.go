package precompiled

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
)

// Where BLS12_G1ADD and BLS12_G2ADD are.
var (
	addG1 = common.Address{19: 0x0b}
	addG2 = common.Address{19: 0x0d}
)

// sumPoints is how many points are multiplied between two looks at the context, in some ten
// milliseconds.
const sumPoints = 256

// interruptibleSum is BLS12_G1MSM or BLS12_G2MSM (EIP-2537). With as much gas as a call may have,
// one takes seconds.
type interruptibleSum struct {
	vm.PrecompiledContract
	*stopper
	points int                    // sumPoints
	add    vm.PrecompiledContract // of two points
	item   int                    // bytes of a point and its factor
}

// Run implements vm.PrecompiledContract.
func (s *interruptibleSum) Run(input []byte) ([]byte, error) {
	part := s.points * s.item
	if len(input) <= part || len(input)%s.item != 0 {
		return s.PrecompiledContract.Run(input)
	}
	var sum []byte
	for len(input) > 0 {
		if s.ended() {
			return nil, errInterrupted
		}
		n := min(part, len(input))
		product, err := s.PrecompiledContract.Run(input[:n])
		if err != nil {
			return nil, err
		}
		input = input[n:]
		if sum == nil {
			sum = product
			continue
		}
		if sum, err = s.add.Run(append(sum, product...)); err != nil {
			return nil, err
		}
	}
	return sum, nil
}
