package api_test

import (
	"fmt"
	"testing"

	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
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

// TestEtherOfDestroyedContracts: from Amsterdam on, a contract that is destroyed in the transaction that creates it
// keeps the ether that it sends to itself (EIP-8246), and nothing else. A difference of states shows what is there.
func TestEtherOfDestroyedContracts(t *testing.T) {
	s, blocks := crossing(t)
	const (
		// It writes a slot. Its code is SELFDESTRUCT(ADDRESS), unless it gets ether.
		victim = "74" + "6001600155" + "67" + "34600657" + "30ff5b00" + "5f5260086018f3" + "5f52"
		create = "6015600b%sf0" // CREATE with so much ether
		call   = "5f5f5f5f5f855af1"
		send   = "5f5f5f5f6001865af1" // CALL with 1 wei
		// It creates a contract that calls the victim and reverts.
		undone = "8060301b" + "7f5f5f5f5f5f73" + "0000000000000000000000000000000000000000" + "5af15f5ffd00" + "17" + "5f52" + "601f5f5ff0"
	)
	for name, c := range map[string]struct {
		block  uint64
		ether  string
		called string
		want   string
	}{
		"before Amsterdam":                        {ingesttest.CrossingFork - 1, "6001", call, "map[]"},
		"before Amsterdam, ether later":           {ingesttest.CrossingFork - 1, "5f", call + send, "map[]"}, // burned at the end
		"before Amsterdam, an undone destruction": {ingesttest.CrossingFork - 1, "6001", undone, "map[]"},    // as in geth
		"Amsterdam":              {uint64(len(blocks)), "6001", call, "map[balance:0x1]"},
		"Amsterdam, ether later": {uint64(len(blocks)), "5f", call + send, "map[balance:0x1]"},
		"Amsterdam, no balance":  {uint64(len(blocks)), "5f", call, "map[]"},
	} {
		t.Run(name, func(t *testing.T) {
			from := common.Address{1}
			message := map[string]any{"from": from, "value": "0x1", "data": "0x" + victim + fmt.Sprintf(create, c.ether) + c.called + "00"}
			config := map[string]any{
				"tracer": "prestateTracer", "tracerConfig": map[string]any{"diffMode": true},
				"stateOverrides": map[common.Address]any{from: map[string]any{"balance": "0x1"}},
			}
			var diff struct {
				Pre, Post map[common.Address]map[string]any
			}
			s.ask(t, &diff, "debug_traceCall", message, hexutil.EncodeUint64(c.block), config)
			var frames struct{ Calls []struct{ To common.Address } }
			config["tracer"], config["tracerConfig"] = "callTracer", nil
			s.ask(t, &frames, "debug_traceCall", message, hexutil.EncodeUint64(c.block), config)
			if len(frames.Calls) < 2 || frames.Calls[0].To != frames.Calls[1].To && c.called != undone {
				t.Fatalf("the call has the frames %v, want a creation and a call of the contract", frames.Calls)
			}
			contract := frames.Calls[0].To
			if got := fmt.Sprint(diff.Post[contract]); got != c.want || diff.Pre[contract] != nil {
				t.Errorf("the contract is %v before and %s after, want nothing and %s", diff.Pre[contract], got, c.want)
			}
		})
	}
}
