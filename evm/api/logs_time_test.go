package api

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ashlar/jsonrpc"
)

// TestLogsOverTime: the query's own time over is an answer that clients know;
// the caller's is the caller's to word.
func TestLogsOverTime(t *testing.T) {
	late := fmt.Errorf("read: %w", context.DeadlineExceeded)
	var known *jsonrpc.Error
	if err := logsError(t.Context(), late); !errors.As(err, &known) || known.Code != -32005 || known.Message != "query timeout exceeded" {
		t.Errorf("got %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := logsError(over, late); err != late {
		t.Errorf("after the caller's end: %v", err)
	}
}
