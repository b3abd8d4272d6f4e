package differential

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ashlar/internal/jsondiff"
	"ashlar/internal/node"
	"ashlar/internal/sample"
)

// parityBlocks is how many blocks compareParity asks for.
const parityBlocks = 25

// compareParity compares trace_block and trace_replayBlockTransactions, which geth does not
// have, with a translation of what geth's flatCallTracer and prestateTracer say.
func compareParity(t *testing.T, chain *sample.Chain, geth, ashlar *node.Client) {
	asked, frames, accounts := 0, 0, 0
	step := max(1, len(chain.Blocks)/parityBlocks)
	for number := step; number < len(chain.Blocks); number += step {
		if chain.Blocks[number].Txs == 0 {
			continue
		}
		asked++
		block := fmt.Sprintf("%#x", number)
		want := flatFrames(t, geth, block)
		got := call(t, ashlar, "trace_block", block)
		for _, frame := range list(got) {
			withoutRootGas(frame.(map[string]any))
		}
		frames += len(want)
		same(t, "trace_block "+block, any(want), got)

		var diffs []any
		for _, diff := range stateDiffs(t, geth, block) {
			accounts += len(diff)
			diffs = append(diffs, any(diff))
		}
		var replayed []any
		for _, one := range list(call(t, ashlar, "trace_replayBlockTransactions", block, []string{"stateDiff"})) {
			replayed = append(replayed, one.(map[string]any)["stateDiff"])
		}
		same(t, "trace_replayBlockTransactions "+block, any(diffs), any(replayed))
	}
	t.Logf("trace_* in %d blocks: %d frames, %d changed accounts", asked, frames, accounts)
	if frames == 0 || accounts == 0 {
		t.Error("nothing was compared")
	}
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if differences := jsondiff.Values(want, got); len(differences) > 0 {
		t.Errorf("%s\n  geth, translated, against Ashlar: %v", what, differences[:min(len(differences), 3)])
	}
}

// call calls a method and returns its result, decoded.
func call(t *testing.T, client *node.Client, method string, args ...any) any {
	t.Helper()
	var raw json.RawMessage
	if err := client.Call(t.Context(), &raw, method, args...); err != nil {
		t.Fatalf("%s %v: %v", method, args, err)
	}
	value, err := jsondiff.Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func list(value any) []any {
	all, _ := value.([]any)
	return all
}

// traced is what a tracer of geth's says of each transaction of a block.
func traced(t *testing.T, geth *node.Client, block, tracer string, options object) (all []any) {
	t.Helper()
	for _, one := range list(call(t, geth, "debug_traceBlockByNumber", block, object{"tracer": tracer, "tracerConfig": options})) {
		all = append(all, one.(map[string]any)["result"])
	}
	return all
}

// flatFrames are the frames of a block in the form of trace_block.
func flatFrames(t *testing.T, geth *node.Client, block string) (frames []any) {
	t.Helper()
	for _, transaction := range traced(t, geth, block, "flatCallTracer", object{"convertParityErrors": true}) {
		for _, one := range list(transaction) {
			frame := one.(map[string]any)
			withoutRootGas(frame)
			if frame["type"] == "suicide" {
				frame["result"] = nil
			}
			if result, ok := frame["result"].(map[string]any); ok && result["code"] != nil && result["address"] == nil {
				result["output"] = result["code"] // a reverted creation has the result of a call
				delete(result, "code")
			}
			frames = append(frames, frame)
		}
	}
	return frames
}

// withoutRootGas takes the gas out of the outermost frame of a transaction. geth counts what
// the transaction pays to be included, the others do not.
func withoutRootGas(frame map[string]any) {
	if len(list(frame["traceAddress"])) > 0 {
		return
	}
	if action, ok := frame["action"].(map[string]any); ok {
		delete(action, "gas")
	}
	if result, ok := frame["result"].(map[string]any); ok {
		delete(result, "gasUsed")
	}
}

// stateDiffs are the stateDiff of each transaction of a block.
func stateDiffs(t *testing.T, geth *node.Client, block string) (diffs []map[string]any) {
	t.Helper()
	for _, one := range traced(t, geth, block, "prestateTracer", object{"diffMode": true}) {
		sides := one.(map[string]any)
		pre, _ := sides["pre"].(map[string]any)
		post, _ := sides["post"].(map[string]any)
		diff := make(map[string]any)
		for _, side := range []map[string]any{pre, post} {
			for address := range side {
				before, _ := pre[address].(map[string]any)
				after, _ := post[address].(map[string]any)
				if before != nil || !untouched(after) {
					diff[address] = accountDiff(before, after)
				}
			}
		}
		diffs = append(diffs, diff)
	}
	return diffs
}

// member returns a member of an account as stateDiff writes it.
func member(account map[string]any, name string) string {
	value, ok := account[name]
	switch {
	case !ok && name == "code":
		return "0x"
	case !ok:
		return "0x0"
	}
	if number, ok := value.(json.Number); ok {
		n, err := number.Int64()
		if err != nil {
			return number.String()
		}
		return fmt.Sprintf("%#x", n)
	}
	return value.(string)
}

// untouched reports whether an account has nothing, so that it does not exist.
func untouched(account map[string]any) bool {
	slots, _ := account["storage"].(map[string]any)
	return len(slots) == 0 && member(account, "balance") == "0x0" && member(account, "nonce") == "0x0" && member(account, "code") == "0x"
}

func accountDiff(before, after map[string]any) map[string]any {
	diff := make(map[string]any)
	for _, name := range []string{"balance", "code", "nonce"} {
		_, changed := after[name]
		diff[name] = valueDiff(before != nil, after != nil, member(before, name), member(after, name), changed)
	}
	slots := make(map[string]any)
	old, _ := before["storage"].(map[string]any)
	now, _ := after["storage"].(map[string]any)
	zero := "0x" + strings.Repeat("0", 64)
	value := func(side map[string]any, slot string) string {
		if text, ok := side[slot].(string); ok {
			return text
		}
		return zero
	}
	for _, side := range []map[string]any{old, now} {
		for slot := range side {
			if from, to := value(old, slot), value(now, slot); after != nil && from != to {
				slots[slot] = valueDiff(before != nil, true, from, to, true)
			}
		}
	}
	diff["storage"] = slots
	return diff
}

// valueDiff is how stateDiff writes a value that was, and is.
func valueDiff(was, is bool, from, to string, changed bool) any {
	switch {
	case !was:
		return map[string]any{"+": to}
	case !is:
		return map[string]any{"-": from}
	case !changed || from == to:
		return "="
	}
	return map[string]any{"*": map[string]any{"from": from, "to": to}}
}
