package network

import (
	"context"

	"ashlar/evm/verify"
	"ashlar/family"
	"ashlar/history/audit"
	"ashlar/kv"
)

// Verify implements [family.Verifier].
func (Family) Verify(ctx context.Context, store kv.Store, v family.Verification, progress *audit.Progress) (family.Verdict, error) {
	report, err := verify.Run(ctx, store, verify.Options{From: v.From, To: v.To, Full: v.Full}, progress)
	if err != nil {
		return nil, err
	}
	return verdict{report}, nil
}

// verdict implements [family.Verdict].
type verdict struct{ *verify.Report }

// Outcome implements [family.Verdict].
func (v verdict) Outcome() *audit.Report { return &v.Report.Report }

// Summary implements [family.Verdict].
func (v verdict) Summary() string {
	return "the state as of " + family.Counted(uint64(v.States), "block")
}
