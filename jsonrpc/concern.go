package jsonrpc

import "context"

// Contract is a contract's address, as the bytes that its family writes it in.
type Contract string

// Concern is what contracts a call reads or runs, for keys that may be used for some
// contracts only. The zero value stands for every contract, so a call that nobody has
// judged is refused.
type Concern struct {
	contracts []Contract
	none      bool
}

// None is the concern of a call that reads no contract's state and no contract's logs.
func None() Concern { return Concern{none: true} }

// About is the concern of a call that reads some contracts, and of one that reads any
// contract where none is given.
func About(contracts ...Contract) Concern { return Concern{contracts: contracts} }

// IsNone says whether a call reads no contract.
func (c Concern) IsNone() bool { return c.none }

// Contracts returns the contracts that a call reads; none where it is any contract, or
// no contract at all.
func (c Concern) Contracts() []Contract { return c.contracts }

// Concerns returns what contracts a call concerns, without making the call. It reads
// params by the functions that the method's handler reads them by, so that both take
// them for the same call. The error says why the contracts cannot be known; it follows
// a sentence about the rules of the key.
type Concerns func(ctx context.Context, params []byte) (Concern, error)

// NoContract is the Concerns of methods that read no contract's state and no contract's
// logs.
func NoContract(context.Context, []byte) (Concern, error) { return None(), nil }

// AnyContract is the Concerns of methods whose calls may read any contract.
func AnyContract(context.Context, []byte) (Concern, error) { return About(), nil }
