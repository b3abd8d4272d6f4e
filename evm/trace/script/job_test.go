package script

import (
	"encoding/json"
	"testing"

	"ashlar/evm/execute"
	"ashlar/evm/trace"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// An override with no code reaches the worker, however it was decoded, and so does one without a code.
func TestJobHasOverridesOfCode(t *testing.T) {
	executor, err := execute.New(params.MergedTestChainConfig)
	if err != nil {
		t.Fatal(err)
	}
	none, empty, other := common.Address{1}, common.Address{2}, common.Address{3}
	q := &Question{Config: trace.Native("callTracer", "{}", params.MergedTestChainConfig), Executor: executor}
	q.At.Header = &types.Header{}
	q.CallOptions.State = execute.StateOverrides{none: {Code: new([]byte)}, empty: {Code: &[]byte{}}, other: {}}
	text, err := q.encode()
	if err != nil {
		t.Fatal(err)
	}
	var decoded job
	if err := json.Unmarshal(text, &decoded); err != nil {
		t.Fatal(err)
	}
	for address, account := range decoded.CallOptions.State {
		if overridden := account.Code != nil; overridden != (address != other) {
			t.Errorf("the code of %s is overridden: %t", address, overridden)
		}
	}
	if len(decoded.CallOptions.State) != 3 || *q.CallOptions.State[none].Code != nil {
		t.Error("overrides are missing, or those of the question were changed")
	}
}
