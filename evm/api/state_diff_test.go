package api_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// TestUndoneDestruction: a contract that destroys itself inside a frame that is reverted is there
// after the run, so stateDiff shows how it was created.
func TestUndoneDestruction(t *testing.T) {
	s := serveMade(t)
	const (
		victim   = "69" + "615fff5f526002601ef3" + "5f52" + "600a60165ff0"                               // CREATE: SELFDESTRUCT(0)
		reverter = "73" + "6b" + "5f5f5f5f5f5f355af15f5ffd" + "5f52600c6014f3" + "5f52" + "6014600c5ff0" // CREATE: call what the input names, revert
		call     = "905f52" + "5f5f60205f5f855af1" + "00"                                                // call the reverter about the victim
	)
	var replayed struct {
		StateDiff map[common.Address]struct{ Code any }
		Trace     []struct {
			Type, Error string
			Action      struct{ Address common.Address }
		}
	}
	s.ask(t, &replayed, "trace_call", map[string]any{"data": "0x" + victim + reverter + call}, []string{"trace", "stateDiff"}, "latest")
	destroyed := 0
	for _, frame := range replayed.Trace {
		if frame.Type != "suicide" {
			continue
		}
		destroyed++
		if code, ok := replayed.StateDiff[frame.Action.Address].Code.(map[string]any); !ok || code["+"] != "0x5fff" {
			t.Errorf("the diff of %s is %v, want its code as created", frame.Action.Address, replayed.StateDiff[frame.Action.Address])
		}
	}
	if destroyed != 1 {
		t.Errorf("%d self-destructions, want 1: %+v", destroyed, replayed.Trace)
	}
}
