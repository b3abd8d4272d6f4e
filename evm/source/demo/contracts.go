package demo

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// compiled is made from the Solidity sources beside it; see contracts/README.md.
//
//go:embed contracts/contracts.json
var compiled []byte

// contract is one compiled contract.
type contract struct {
	ABI      abi.ABI       `json:"abi"`
	Bytecode hexutil.Bytes `json:"bytecode"` // runs once and returns the runtime code
	Runtime  hexutil.Bytes `json:"runtime"`  // without immutables filled in
}

// contracts are the compiled contracts by the name in their source.
type contracts map[string]*contract

func loadContracts() (contracts, error) {
	var all contracts
	if err := json.Unmarshal(compiled, &all); err != nil {
		return nil, fmt.Errorf("demo: contracts.json: %w", err)
	}
	return all, nil
}

func (c contracts) get(name string) (*contract, error) {
	if found, ok := c[name]; ok {
		return found, nil
	}
	return nil, fmt.Errorf("demo: contracts.json has no contract %q", name)
}

// call is the input of a call of a method.
func (c contracts) call(name, method string, args ...any) ([]byte, error) {
	found, err := c.get(name)
	if err != nil {
		return nil, err
	}
	input, err := found.ABI.Pack(method, args...)
	if err != nil {
		return nil, fmt.Errorf("demo: %s.%s: %w", name, method, err)
	}
	return input, nil
}

// create is the input of a transaction that creates the contract.
func (c contracts) create(name string, args ...any) ([]byte, error) {
	found, err := c.get(name)
	if err != nil {
		return nil, err
	}
	packed, err := found.ABI.Pack("", args...)
	if err != nil {
		return nil, fmt.Errorf("demo: constructor of %s: %w", name, err)
	}
	input := make([]byte, 0, len(found.Bytecode)+len(packed))
	return append(append(input, found.Bytecode...), packed...), nil
}
