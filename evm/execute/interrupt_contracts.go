package execute

import (
	"context"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// interruptible replaces the contracts that a call could run for too long by ones that end
// with the context of what it returns, which is ctx at first.
func interruptible(ctx context.Context, rules params.Rules, contracts vm.PrecompiledContracts) *stopper {
	end := &stopper{ctx}
	for address, contract := range contracts {
		switch contract.Name() {
		case "BLAKE2F":
			contracts[address] = &interruptibleBlake{contract, end}
		case "MODEXP":
			if !rules.IsOsaka { // which limits the operands
				contracts[address] = &interruptibleModexp{contract, end, modexpWork}
			}
		case "BN254_PAIRING":
			contracts[address] = &interruptiblePairing{contract, end, pairedAtOnce, bn254Pair, newBN254Pairing}
		case "BLS12_PAIRING_CHECK":
			contracts[address] = &interruptiblePairing{contract, end, pairedAtOnce, bls12381Pair, newBLS12381Pairing}
		case "BLS12_G1MSM":
			contracts[address] = &interruptibleSum{contract, end, sumPoints, vm.PrecompiledContractsPrague[addG1], 128 + 32}
		case "BLS12_G2MSM":
			contracts[address] = &interruptibleSum{contract, end, sumPoints, vm.PrecompiledContractsPrague[addG2], 256 + 32}
		}
	}
	return end
}

// contractSet are the precompiled contracts of a call, kept for the next one.
type contractSet struct {
	rules     params.Rules
	contracts vm.PrecompiledContracts
	end       *stopper
}

var contractSets sync.Pool // of *contractSet

// contractsFor returns the precompiled contracts of a call or a replay. They must be
// released, unless they were changed.
func contractsFor(ctx context.Context, rules params.Rules) *contractSet {
	set, ok := contractSets.Get().(*contractSet)
	if !ok || set.rules != rules {
		set = &contractSet{rules: rules, contracts: vm.ActivePrecompiledContracts(rules)}
		set.end = interruptible(ctx, rules, set.contracts)
	}
	set.until(ctx)
	return set
}

// until lets the contracts run until ctx is done.
func (s *contractSet) until(ctx context.Context) { s.end.ctx = ctx }

// release keeps the contracts for another call.
func (s *contractSet) release() {
	s.until(context.Background()) // a pooled set refers to no client
	contractSets.Put(s)
}

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
