package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/evm/execute"
	"ashlar/jsonrpc"
	"ashlar/upstream"
)

// A pending block can be of a fork that this version does not know: nothing is broken then.
func TestUnknownForkIsExplained(t *testing.T) {
	err := translate(fmt.Errorf("block 1 (0x00): %w", execute.ErrUnknownFork))
	var answered *jsonrpc.Error
	if !errors.As(err, &answered) || answered.Code != jsonrpc.CodeServer || answered.Message != execute.ErrUnknownFork.Error() {
		t.Errorf("%v, expected code %d and %q", err, jsonrpc.CodeServer, execute.ErrUnknownFork)
	}
}

// Nodes that cannot prove an answer are no internal error, and their words are not shown.
func TestNodesErrorsAreTranslated(t *testing.T) {
	said := func(code int, message string) error { return &upstream.NodeError{Code: code, Message: message} }
	for _, c := range []struct {
		err     error
		code    int
		message string
	}{
		{upstream.ErrPruned, jsonrpc.CodePruned, "pruned history unavailable: block or historical state is not available"},
		{said(4444, "no state on node-7"), jsonrpc.CodePruned, "pruned history unavailable: block or historical state is not available"},
		{said(-32603, "node-7 is broken"), jsonrpc.CodeServer, "the answer cannot be proven: no upstream can answer"},
		{fmt.Errorf("%w: %w", upstream.ErrUnavailable, said(-32000, "node-7 is broken")), jsonrpc.CodeServer, "the answer cannot be proven: no upstream can answer"},
		{upstream.ErrLie, jsonrpc.CodeServer, "the answer cannot be proven: the node's answer is false"},
	} {
		err := translate(fmt.Errorf("ask node-7: %w", c.err))
		var answered *jsonrpc.Error
		if !errors.As(err, &answered) || answered.Code != c.code || answered.Message != c.message {
			t.Errorf("%v is answered by %v, expected code %d and %q", c.err, err, c.code, c.message)
		}
	}
}

// Proxies before several nodes learn from words of an error whether a node lacks a method. They send the method elsewhere if
// a network has no index for it, but not because of one call with a member that the method does not take.
func TestProxiesLearnWhatIsMissing(t *testing.T) {
	if !strings.HasPrefix(errNoTraceIndex.Message, "the method is not available") {
		t.Errorf("no trace index: %s", errNoTraceIndex.Message)
	}
	if strings.Contains(errNoOverride.Error(), "not supported") {
		t.Errorf("an override: %s", errNoOverride)
	}
}
