package engine

import "testing"

// TestNullWithdrawals: V2 takes blocks of Paris too, and withdrawals that are null are the same as none.
func TestNullWithdrawals(t *testing.T) {
	block, s := made(t, shanghai-1)
	for _, null := range []bool{false, true} {
		if null {
			s.payload["withdrawals"] = nil
		}
		l := &listener{status: valid(block.Hash())}
		answer := ask(t, New(Config{Chain: l, Rules: rules()}).Methods(), "engine_newPayloadV2", s.payload)
		if len(l.blocks) != 1 || l.blocks[0].Hash() != block.Hash() {
			t.Errorf("withdrawals are null: %t: %s", null, answer)
		}
	}
}
