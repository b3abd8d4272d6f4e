package family

import (
	"context"

	"ashlar/history/audit"
	"ashlar/kv"
)

// Verifier is the part of a [Family] that checks what is stored of a network.
type Verifier interface {
	// Verify checks the network in a store against itself. What is wrong with it is
	// in the verdict; an error says that it could not be checked: ErrRange,
	// ErrNoState, kv.ErrNotFound if the store is empty. It changes nothing.
	Verify(ctx context.Context, store kv.Store, v Verification, progress *audit.Progress) (Verdict, error)
}

// Verification is what is to be verified.
type Verification struct {
	From, To uint64 // blocks; a From of 0 is the first that is stored, a To of [audit.Head] the last
	Full     bool   // the state as of every block, not of a sample
}

// Verdict is the result of a verification. It is marshaled to JSON as an object.
type Verdict interface {
	// Outcome is what every family's check says.
	Outcome() *audit.Report
	// Summary says what was checked besides blocks, transactions and rows.
	Summary() string
	// Unchecked says what could not be checked of a sound network, in sentences; nil if all was.
	Unchecked() []string
}
