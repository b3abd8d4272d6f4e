// Package precompiled has the precompiled contracts of calls, traces and simulations. They compute
// what go-ethereum's do, and end early if nobody waits for the result any more: with as much gas as a
// call may have, some take seconds.
package precompiled

import (
	"context"
	"errors"
	"sync"

	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/params"
)

// errInterrupted ends a precompiled contract whose client has left. The run is aborted, so
// nobody sees the error.
var errInterrupted = errors.New("precompiled: interrupted")

// stopper is what ends the precompiled contracts of a call.
type stopper struct{ ctx context.Context }

// ended reports whether nobody waits for the result of a contract any more.
func (s *stopper) ended() bool { return s.ctx.Err() != nil }

// Interruptible replaces the contracts that a call could run for too long by ones that end with ctx.
func Interruptible(ctx context.Context, rules params.Rules, contracts vm.PrecompiledContracts) {
	replace(contracts, rules, &stopper{ctx})
}

func replace(contracts vm.PrecompiledContracts, rules params.Rules, end *stopper) {
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
}

// Set is the precompiled contracts of a call, which are kept for the next one. It belongs to one
// goroutine.
type Set struct {
	Contracts vm.PrecompiledContracts // by address; must not be changed

	rules params.Rules
	end   *stopper
}

var sets sync.Pool // of *Set

// For returns the precompiled contracts of the rules, which run until ctx is done. They must be
// released.
func For(ctx context.Context, rules params.Rules) *Set {
	set, ok := sets.Get().(*Set)
	if !ok || set.rules != rules {
		set = &Set{Contracts: vm.ActivePrecompiledContracts(rules), rules: rules, end: new(stopper)}
		replace(set.Contracts, rules, set.end)
	}
	set.Until(ctx)
	return set
}

// Until lets the contracts run until ctx is done.
func (s *Set) Until(ctx context.Context) { s.end.ctx = ctx }

// Release keeps the contracts for another call.
func (s *Set) Release() {
	s.Until(context.Background()) // a pooled set refers to no client
	sets.Put(s)
}
