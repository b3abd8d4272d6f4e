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
	switch b := v.Bare; {
	case b == nil || uint64(v.Rebuilt) == b.To-b.From+1:
	case v.Rebuilt > 0:
		all = append(all, fmt.Sprintf("States of %s: their trie nodes are not stored. The tries were built again as of %s; as of the others only the form of the rows was checked.",
			named(b), family.Counted(uint64(v.Rebuilt), "block")))
	default:
		all = append(all, fmt.Sprintf("States of %s: their trie nodes are not stored. Only the form of the rows was checked, as a cluster does not have them in the order of the tries.", named(b)))
	}
	return all
}

func named(b *verify.Blocks) string {
	if b.From == b.To {
		return fmt.Sprintf("block %d", b.From)
	}
	return fmt.Sprintf("blocks %d to %d", b.From, b.To)
}
