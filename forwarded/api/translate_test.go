package api

import (
	"errors"
	"fmt"
	"testing"

	"ashlar/jsonrpc"
	"ashlar/upstream"
)

// A client whose call is too large for the nodes is told so, and not to try again later.
func TestCallTooLargeIsTranslated(t *testing.T) {
	var known *jsonrpc.Error
	if err := translate(fmt.Errorf("http://node: %w: 5242990 bytes", upstream.ErrCallTooLarge)); !errors.As(err, &known) || known != errCallTooLarge {
		t.Errorf("translated to %v, expected %v", err, errCallTooLarge)
	}
}
