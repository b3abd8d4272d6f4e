package api_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
)

// limitedCall traces a call of code under a limit of the answer.
func limitedCall(t *testing.T, limit int, code map[common.Address]string, options string) string {
	t.Helper()
	overrides := make(map[common.Address]any)
	for address, text := range code {
		overrides[address] = map[string]any{"code": "0x" + text}
	}
	text, err := json.Marshal(overrides)
	if err != nil {
		t.Fatal(err)
	}
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"debug_traceCall","params":[{"to":%q,"gas":"0x2dc6c0"},"latest",{"stateOverrides":%s,%s]}`,
		common.Address{0xa1}, text, options[1:])
	answer, _ := limited(t, serveMade(t).methods, limit, request)
	return string(answer)
}

// repeated is code that calls a contract 2,000 times, with 1,000 gas and the number of the call.
func repeated(contract common.Address) string {
	return "5f" + "5b" + "805f52" + "5f5f60205f5f73" + fmt.Sprintf("%x", contract) + "6103e8f150" + "600101" + "806107d011600157" + "00"
}

// TestPreimagesEndAtTheLimit: what a tracer keeps of KECCAK256 counts against its answer. An
// instruction that fails costs little, and leaves up to a mebibyte.
func TestPreimagesEndAtTheLimit(t *testing.T) {
	code := map[common.Address]string{
		{0xa1}: repeated(common.Address{0xa2}),
		{0xa2}: "5f35" + "620f000001" + "5f2000", // KECCAK256 of 960 KiB and the number of the call
	}
	for _, options := range []string{
		`{"tracer":"keccak256PreimageTracer"}`, `{"tracer":"erc7562Tracer"}`,
		`{"tracer":"muxTracer","tracerConfig":{"noopTracer":{},"muxTracer":{"keccak256PreimageTracer":{}}}}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if answer := limitedCall(t, 20<<20, code, options); !strings.Contains(answer, "response too large") {
			t.Errorf("%s: %.200s", options, answer)
		}
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 300 {
			t.Errorf("%s: %d MiB were allocated under a limit of 20 MiB", options, took)
		}
	}
	// Equal preimages are kept once.
	code[common.Address{0xa2}] = "60ff5f2000"
	if answer := limitedCall(t, 100_000, code, `{"tracer":"keccak256PreimageTracer"}`); strings.Contains(answer, "error") {
		t.Errorf("a preimage that is hashed often: %.200s", answer)
	}
}

// TestHashOfTooMuch: KECCAK256 of a range that ends above 2^63 fails in the trace, not in the tracer.
func TestHashOfTooMuch(t *testing.T) {
	const code = "602a5f52" + "677fffffffffffffff" + "6001" + "20"
	for _, tracer := range []string{"keccak256PreimageTracer", "erc7562Tracer"} {
		if answer := limitedCall(t, 1<<20, map[common.Address]string{{0xa1}: code}, `{"tracer":"`+tracer+`"}`); !strings.Contains(answer, `"result"`) {
			t.Errorf("%s: %.200s", tracer, answer)
		}
	}
}

// TestMissingOperands: a run that fails for want of operands has a trace.
func TestMissingOperands(t *testing.T) {
	for _, code := range []string{"20", "5f20", "3b", "3c", "3f", "54", "55", "5c", "5d", "f1", "5ff1", "f2", "f4", "fa"} {
		if answer := limitedCall(t, 1<<20, map[common.Address]string{{0xa1}: code}, `{"tracer":"erc7562Tracer"}`); !strings.Contains(answer, `"error":"stack underflow`) {
			t.Errorf("%s: %.200s", code, answer)
		}
	}
}
