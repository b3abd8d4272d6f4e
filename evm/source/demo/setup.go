package demo

import (
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
)

const (
	poolReserve  = 1_000_000 // of each token, in whole tokens
	airdropValue = 1_000     // whole tokens
	airdropCount = 50
)

// deployments are the deployer's transactions, in the order that
// [Network.placeContracts] counts on: first the contracts, then what makes them
// ready for use.
func (n *Network) deployments() ([]call, error) {
	s := &setup{network: n}
	for i := range n.tokens {
		s.create(900_000, "Token", fmt.Sprintf("Demo Token %d", i), fmt.Sprintf("DT%d", i))
	}
	for range n.collections {
		s.create(900_000, "Collectible")
	}
	for i := range n.pools {
		s.create(900_000, "Pool", n.tokens[i], n.tokens[i+1])
	}
	s.create(500_000, "Emitter")
	s.create(400_000, "Ledger")
	s.create(550_000, "Factory")
	s.create(500_000, "Faults")
	s.create(350_000, "Delegate")
	s.create(200_000, "Scratch")

	for i, pool := range n.pools {
		reserve := wholeTokens(poolReserve)
		for _, token := range n.tokens[i : i+2] {
			s.call(100_000, token, "Token", "mint", n.deployer.address, reserve)
			s.call(60_000, token, "Token", "approve", pool, reserve)
		}
		s.call(250_000, pool, "Pool", "addLiquidity", reserve, reserve)
	}
	few := n.holders[:min(airdropCount, len(n.holders))]
	s.call(uint64(100_000+35_000*len(few)), n.tokens[0], "Token", "airdrop", few, wholeTokens(airdropValue))
	return s.calls, s.err
}

// setup collects the deployer's calls and keeps the first error.
type setup struct {
	network *Network
	calls   []call
	err     error
}

func (s *setup) create(gas uint64, contract string, args ...any) {
	input, err := s.network.contracts.create(contract, args...)
	s.add(call{from: s.network.deployer, gas: gas, input: input}, err)
}

func (s *setup) call(gas uint64, to common.Address, contract, method string, args ...any) {
	input, err := s.network.contracts.call(contract, method, args...)
	s.add(call{from: s.network.deployer, to: &to, gas: gas, input: input}, err)
}

func (s *setup) add(c call, err error) {
	s.calls = append(s.calls, c)
	if s.err == nil {
		s.err = err
	}
}

// wholeTokens is an amount of whole tokens, with their 18 decimals.
func wholeTokens(n int64) *big.Int { return ether(n) }
