package network

import (
	"context"
	"fmt"

	"ashlar/family"
	"ashlar/history/audit"
	"ashlar/kv"
	"ashlar/starknet/verify"
)

// Verify implements [family.Verifier].
func (Family) Verify(ctx context.Context, store kv.Store, v family.Verification, progress *audit.Progress) (family.Verdict, error) {
	if v.Full {
		return nil, fmt.Errorf("%w on networks of family %s: every block is checked in full anyway", family.ErrNoState, name)
	}
	report, err := verify.Run(ctx, store, verify.Options{From: v.From, To: v.To}, progress)
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
	return fmt.Sprintf("%s, the hashes of %s recomputed and of %s taken as stored",
		family.Counted(v.Events, "event"), family.Counted(v.Recomputed, "block"), family.Count(v.Taken))
}

// Unchecked implements [family.Verdict]. The summary has the hashes that were taken as stored.
func (verdict) Unchecked() []string { return nil }
