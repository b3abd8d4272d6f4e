package api

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/forwarded/check"
	"ashlar/jsonrpc"
	"ashlar/upstream"
)

// A client whose call is refused is told so, although no node has answered.
func TestRefusedCallIsTranslated(t *testing.T) {
	var known *jsonrpc.Error
	if err := translate(fmt.Errorf("%w: http://node: %w", upstream.ErrUnavailable, upstream.ErrCallRefused)); !errors.As(err, &known) || known != errCallRefused {
		t.Errorf("translated to %v, expected %v", err, errCallRefused)
	}
}

// A client whose call is too large for the nodes is told so, and not to try again later.
func TestCallTooLargeIsTranslated(t *testing.T) {
	var known *jsonrpc.Error
	if err := translate(fmt.Errorf("http://node: %w: 5242990 bytes", upstream.ErrCallTooLarge)); !errors.As(err, &known) || known != errCallTooLarge {
		t.Errorf("translated to %v, expected %v", err, errCallTooLarge)
	}
}

// Another Ashlar in front learns from the text of an error what it means.
func TestMeaningOfErrors(t *testing.T) {
	for _, c := range []struct {
		err     error
		means   upstream.Means
		tooMuch bool
	}{
		{upstream.ErrPruned, upstream.MeansPruned, false},
		{upstream.ErrUnsupported, upstream.MeansUnsupported, false},
		{upstream.ErrUnavailable, upstream.MeansFailure, false},
		{&upstream.AsideError{Until: time.Now().Add(time.Minute)}, upstream.MeansFailure, false},
		{&upstream.NodeError{Code: jsonrpc.CodeInternal, Message: "node-7 is broken"}, upstream.MeansFailure, false},
		{&upstream.NodeError{Code: jsonrpc.CodeLimitExceeded, Message: "request rate exceeded"}, upstream.MeansFailure, false},
		{upstream.ErrUncertain, upstream.MeansAnswer, false}, // it must not be repeated
		{upstream.ErrCallRefused, upstream.MeansAnswer, false},
		{upstream.ErrCallTooLarge, upstream.MeansAnswer, false}, // a shorter range does not help
		{upstream.ErrTooLarge, upstream.MeansAnswer, true},
		{&chain.TooManyLogs{Limit: 10000, From: 1, To: 5, Fits: true}, upstream.MeansAnswer, true},
		{check.ErrUncles, upstream.MeansAnswer, false},
		{check.ErrTransactions, upstream.MeansAnswer, false},
		{check.ErrOutcomes, upstream.MeansAnswer, false},
		{chain.ErrUnknownBlock, upstream.MeansPruned, false}, // a node behind the others says so too
		{chain.ErrNotCanonical, upstream.MeansPruned, false},
		{chain.ErrNoSafe, upstream.MeansPruned, false},
		{chain.ErrNoFinalized, upstream.MeansPruned, false},
		{eth.ErrLogBlock, upstream.MeansPruned, false},
		{eth.ErrLogsBeyondHead, upstream.MeansPruned, false},
		{eth.ErrLogRange, upstream.MeansAnswer, true},
	} {
		var sent *jsonrpc.Error
		if !errors.As(translate(c.err), &sent) {
			t.Errorf("%v is sent as an internal error", c.err)
			continue
		}
		e := &upstream.NodeError{Code: sent.Code, Message: sent.Message}
		if means, tooMuch := upstream.Meaning(e), upstream.IsTooMuch(e); means != c.means || tooMuch != c.tooMuch {
			t.Errorf("%d %s: means %d, too much: %t; expected %d, %t", e.Code, e.Message, means, tooMuch, c.means, c.tooMuch)
		}
		if c.means == upstream.MeansFailure && !strings.HasSuffix(e.Message, ": try again later") {
			t.Errorf("%q does not say when to try again, which older ones in front need", e.Message)
		}
	}
}
