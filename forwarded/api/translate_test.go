package api

import (
	"errors"
	"fmt"
	"testing"

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
