package network

import (
	"context"
	"fmt"

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

// Unchecked implements [family.Verdict].
func (v verdict) Unchecked() (all []string) {
	if b := v.Stateless; b != nil {
		all = append(all, fmt.Sprintf("States of %s: not stored.", named(b)))
	}
	if b := v.Form; b != nil {
		all = append(all, fmt.Sprintf("States of %s: only the form of their rows was checked, not their state roots, because their trie nodes are not stored.", named(b)))
	}
	return all
}

func named(b *verify.Blocks) string {
	if b.From == b.To {
		return fmt.Sprintf("block %d", b.From)
	}
	return fmt.Sprintf("blocks %d to %d", b.From, b.To)
}
