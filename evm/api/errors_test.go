package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/query"
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
	away := func(kind archive.Kind, err error) error {
		return &archive.Away{Kind: kind, Number: 5, First: 12, Last: 20, Err: err}
	}
	for _, c := range []struct {
		err     error
		code    int
		message string
	}{
		{upstream.ErrPruned, jsonrpc.CodePruned, "pruned history unavailable: block or historical state is not available"},
		{said(4444, "no state on node-7"), jsonrpc.CodePruned, "pruned history unavailable: block or historical state is not available"},
		{said(-32603, "node-7 is broken"), jsonrpc.CodeServer, "the answer cannot be proven: no upstream can answer: try again later"},
		{fmt.Errorf("%w: %w", upstream.ErrUnavailable, said(-32000, "node-7 is broken")), jsonrpc.CodeServer, "the answer cannot be proven: no upstream can answer: try again later"},
		{upstream.ErrLie, jsonrpc.CodeServer, "the answer cannot be proven: the node's answer is false: try again later"},
		{upstream.ErrUnsupported, jsonrpc.CodeServer, "the answer cannot be proven: no upstream has the method"},
		{&archive.Pruned{Kind: archive.OfState, Number: 5, First: 12}, jsonrpc.CodePruned, "pruned history unavailable: historical state is not available at block 5 (the first block with state is 12)"},
		{away(archive.OfState, upstream.ErrUnavailable), jsonrpc.CodeServer, "the state of block 5 is not stored (the first block with state is 12), and the answer cannot be proven: no upstream can answer: try again later"},
		{away(archive.OfState, evm.ErrUnnamed), jsonrpc.CodeServer, "the state of block 5 is not stored (the first block with state is 12), and the answer cannot be proven: " + evm.ErrUnnamed.Error()},
	} {
		err := translate(fmt.Errorf("ask node-7: %w", c.err))
		var answered *jsonrpc.Error
		if !errors.As(err, &answered) || answered.Code != c.code || answered.Message != c.message {
			t.Errorf("%v is answered by %v, expected code %d and %q", c.err, err, c.code, c.message)
		}
	}
}

// Another Ashlar in front learns from the text of an error what it means, as from that of any node. It must not take an outage
// for history that is not stored, nor for an answer that other nodes would give too.
func TestMeaningOfErrors(t *testing.T) {
	away := func(kind archive.Kind, err error) error {
		return &archive.Away{Kind: kind, Number: 5, First: 12, Last: 20, Err: err}
	}
	for _, c := range []struct {
		err   error
		means upstream.Means
	}{
		{&archive.Pruned{Kind: archive.OfBlock, Number: 5, First: 12}, upstream.MeansPruned},
		{&archive.Pruned{Kind: archive.OfState, Number: 5, First: 12}, upstream.MeansPruned},
		{&archive.Pruned{Kind: archive.OfTries, Number: 5, First: 12}, upstream.MeansPruned},
		{upstream.ErrPruned, upstream.MeansPruned},
		{evm.ErrMissing, upstream.MeansPruned},
		{upstream.ErrUnavailable, upstream.MeansFailure},
		{&upstream.AsideError{Until: time.Now().Add(time.Minute)}, upstream.MeansFailure},
		{upstream.ErrLie, upstream.MeansFailure},
		{&upstream.NodeError{Code: jsonrpc.CodeInternal, Message: "node-7 is broken"}, upstream.MeansFailure},
		{upstream.ErrUnsupported, upstream.MeansAnswer},
		{evm.ErrUnnamed, upstream.MeansAnswer},
		{away(archive.OfBlock, upstream.ErrUnavailable), upstream.MeansFailure},
		{away(archive.OfState, upstream.ErrUnavailable), upstream.MeansFailure},
		{away(archive.OfTries, upstream.ErrUnavailable), upstream.MeansFailure},
		{away(archive.OfState, evm.ErrUnnamed), upstream.MeansAnswer},
		{away(archive.OfTries, upstream.ErrUnsupported), upstream.MeansAnswer},
		{&archive.Away{Kind: archive.OfBlock, Number: 30, First: 12, Last: 20, Err: upstream.ErrUnavailable}, upstream.MeansFailure},
		{query.ErrHeadState, upstream.MeansFailure},
		{query.ErrUnknownBlock, upstream.MeansPruned}, // a node behind the others says so too
		{query.ErrUnknownHash, upstream.MeansPruned},
		{query.ErrNotCanonical, upstream.MeansPruned},
		{query.ErrNoFinalized, upstream.MeansPruned},
		{query.ErrNoSafe, upstream.MeansPruned},
		{execute.ErrGenesis, upstream.MeansAnswer},
		{execute.ErrUnknownFork, upstream.MeansAnswer},
		{errNoTraceIndex, upstream.MeansUnsupported},
		{jsonrpc.InvalidArgument(3, errNoOverride.Error()), upstream.MeansAnswer},
		{errTakesNone, upstream.MeansAnswer},
		{errTracePending, upstream.MeansAnswer},
	} {
		var sent *jsonrpc.Error
		if !errors.As(translate(c.err), &sent) {
			t.Errorf("%v is sent as an internal error", c.err)
			continue
		}
		e := &upstream.NodeError{Code: sent.Code, Message: sent.Message}
		if means := upstream.Meaning(e); means != c.means || upstream.IsTooMuch(e) {
			t.Errorf("%d %s: means %d, too much: %t; expected %d, false", e.Code, e.Message, means, upstream.IsTooMuch(e), c.means)
		}
		if c.means == upstream.MeansFailure && !strings.Contains(e.Message, ": try again") {
			t.Errorf("%q does not say when to try again, which older ones in front need", e.Message)
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
