package evm

import "github.com/ethereum/go-ethereum/common"

// Traces says who takes part in the traces of a block: its calls, creations,
// self-destructions and rewards, in the order of trace_block. Changes is what one needs to
// trace a transaction without those before it.
type Traces struct {
	List []Trace // by position
	// Ends are the positions after the last trace of each transaction. Rewards follow the
	// last transaction.
	Ends []int
	// Changes are nil if they were not recorded or cannot be said. Before Byzantium, and from
	// Amsterdam on, there are none.
	Changes *Changes
}

// Trace says who takes part in one trace.
type Trace struct {
	From, To common.Address // valid as far as Roles says
	Roles    Roles
}

// Roles is a set of roles in a trace.
type Roles uint8

const (
	// Sender means that From calls, creates or is destroyed.
	Sender Roles = 1 << iota
	// Receiver means that To is called, created, or paid by a self-destruction.
	Receiver
	// Created means that To is created for good: neither the creation nor a call around it
	// was reverted.
	Created
	// Rewarded means that To is paid a reward.
	Rewarded
)

// Add appends the traces of the next transaction.
func (t *Traces) Add(transaction []Trace) {
	t.List = append(t.List, transaction...)
	t.Ends = append(t.Ends, len(t.List))
}
