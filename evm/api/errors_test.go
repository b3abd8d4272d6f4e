package api

import (
	"errors"
	"fmt"
	"testing"

	"ashlar/evm/execute"
	"ashlar/jsonrpc"
)

// A pending block can be of a fork that this version does not know: nothing is broken then.
func TestUnknownForkIsExplained(t *testing.T) {
	err := translate(fmt.Errorf("block 1 (0x00): %w", execute.ErrUnknownFork))
	var answered *jsonrpc.Error
	if !errors.As(err, &answered) || answered.Code != jsonrpc.CodeServer || answered.Message != execute.ErrUnknownFork.Error() {
		t.Errorf("%v, expected code %d and %q", err, jsonrpc.CodeServer, execute.ErrUnknownFork)
	}
}
