package cassandra

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/kv"
)

// Nodes do not agree on the schema, and one hangs. The time in which it should have answered is not that of the caller: the
// store cannot be reached, and a write goes on later.
func TestDisagreement(t *testing.T) {
	hangs := fmt.Errorf("node 10.0.0.1: %w", context.DeadlineExceeded)
	down := errors.New("node 10.0.0.2: no connection")
	err := translate(disagreement([]error{hangs, down}))
	if !errors.Is(err, kv.ErrUnavailable) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), down.Error()) {
		t.Errorf("%v, expected one line that wraps ErrUnavailable", err)
	}
}
