package trace_test

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"ashlar/evm/execute"
	"ashlar/evm/trace"
	"ashlar/internal/jsondiff"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth/tracers"
	"github.com/holiman/uint256"
)

// TestFramesAreGeths compares the frames of every recorded transaction with those of
// go-ethereum's flatCallTracer. They may differ in the gas of the outermost frame, which
// go-ethereum counts with what the transaction pays to be included, a self-destruction has a
// result that is null, and a creation that was reverted has the result of a call.
func TestFramesAreGeths(t *testing.T) {
	frames, failed, undone := 0, 0, 0
	eachRecorded(t, func(name string, text []byte) {
		var c recorded
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		var got []byte
		err := c.replay(t.Context(), func(r *execute.Replay) error {
			replayed, err := trace.Kinds{Trace: true}.Transaction(t.Context(), r, c.Genesis.Config, 0, roomFor(math.MaxInt))
			if err == nil {
				got = replayed.Append(nil, nil)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		var want json.RawMessage
		err = c.replay(t.Context(), func(r *execute.Replay) error {
			block, err := r.Block().Whole()
			if err != nil {
				return err
			}
			about := &tracers.Context{BlockHash: block.Hash(), BlockNumber: block.Number(), TxHash: block.Transactions()[0].Hash()}
			theirs, err := tracers.DefaultDirectory.New("flatCallTracer", about, json.RawMessage(`{"convertParityErrors":true}`), c.Genesis.Config)
			if err != nil {
				return err
			}
			if err := r.Trace(t.Context(), execute.Tracer{Hooks: theirs.Hooks, Stop: theirs.Stop}); err != nil {
				return err
			}
			want, err = theirs.GetResult()
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		ours, err := jsondiff.Decode(got)
		if err != nil {
			t.Fatalf("%s: %v: %s", name, err, got)
		}
		theirs, err := jsondiff.Decode(want)
		if err != nil {
			t.Fatal(err)
		}
		ourFrames, theirFrames := ours.(map[string]any)["trace"].([]any), theirs.([]any)
		for _, one := range theirFrames {
			if asCall(one.(map[string]any)) {
				undone++
			}
		}
		for _, all := range [][]any{ourFrames, theirFrames} {
			withoutGas(all[0].(map[string]any))
			for _, one := range all {
				frame := one.(map[string]any)
				if frame["type"] == "suicide" {
					frame["result"] = nil
				}
				if frame["error"] != nil {
					failed++
				}
			}
		}
		frames += len(theirFrames)
		if differences := jsondiff.Values(any(theirFrames), any(ourFrames)); len(differences) > 0 {
			t.Errorf("%s: geth against Ashlar: %v", name, differences[0])
		}
	})
	t.Logf("%d frames, %d with an error, %d of them reverted creations", frames, failed/2, undone)
	if frames == 0 || failed == 0 || undone == 0 {
		t.Error("nothing was compared")
	}
}

// asCall gives the frame of a reverted creation the result of a call. go-ethereum's has what it
// returned as code, and no address, which is neither the result of a creation nor that of a call.
func asCall(frame map[string]any) bool {
	result, _ := frame["result"].(map[string]any)
	code, returned := result["code"]
	if _, created := result["address"]; created || !returned {
		return false
	}
	delete(result, "code")
	result["output"] = code
	return true
}

func withoutGas(frame map[string]any) {
	delete(frame["action"].(map[string]any), "gas")
	if result, ok := frame["result"].(map[string]any); ok {
		delete(result, "gasUsed")
	}
}

// A reward has no transaction. Its frame leaves out the members that name one, as in Erigon, reth and
// Nethermind: go-ethereum's common.Hash, and with it tools such as TrueBlocks' chifra, refuse null.
func TestRewardFrameNamesNoTransaction(t *testing.T) {
	block := types.NewBlockWithHeader(&types.Header{Number: big.NewInt(100)})
	frame := trace.RewardFrame(execute.Decoded(block), &execute.Reward{Author: common.Address{19: 1}, Value: *uint256.NewInt(5)})
	want := `{"action":{"author":"0x0000000000000000000000000000000000000001","rewardType":"block","value":"0x5"},` +
		`"blockHash":"` + block.Hash().Hex() + `","blockNumber":100,"result":null,"subtraces":0,"traceAddress":[],"type":"reward"}`
	if got := string(frame.Append(nil)); got != want {
		t.Errorf("the frame is %s, expected %s", got, want)
	}
}
