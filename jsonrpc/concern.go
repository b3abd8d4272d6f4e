package jsonrpc

import "context"

// Contract is a contract's address, in the byte form of its family.
type Contract string

// Concern lists the contracts that a call reads or runs, for keys restricted to some
// contracts. The zero value means any contract, so that a call without a concern is
// refused.
type Concern struct {
	contracts []Contract
	none      bool
}

// None is the concern of a call that reads no contract's state or logs.
func None() Concern { return Concern{none: true} }

// About is the concern of a call that reads the given contracts; without arguments, any
// contract.
func About(contracts ...Contract) Concern { return Concern{contracts: contracts} }

// IsNone reports whether a call reads no contract.
func (c Concern) IsNone() bool { return c.none }

// Contracts returns the contracts that a call reads. It is empty if the call reads any
// contract, or none.
func (c Concern) Contracts() []Contract { return c.contracts }

// Concerns returns the contracts that a call concerns, without running the call. It must
// parse params with the functions that the method's handler uses, so that both see the same
// call. The error says why the contracts cannot be determined; its text is appended to a
// sentence about the rules of the key.
type Concerns func(ctx context.Context, params []byte) (Concern, error)

// NoContract is the Concerns of methods that read no contract's state or logs.
func NoContract(context.Context, []byte) (Concern, error) { return None(), nil }

// AnyContract is the Concerns of methods whose calls may read any contract.
func AnyContract(context.Context, []byte) (Concern, error) { return About(), nil }
