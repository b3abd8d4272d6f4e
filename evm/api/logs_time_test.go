package api

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"ashlar/evm/query"
	"ashlar/jsonrpc"
)

// TestLogsOverTime: the query's own time over is an answer that clients know, with half of the range
// to be tried instead; the caller's is the caller's to word.
func TestLogsOverTime(t *testing.T) {
	late := fmt.Errorf("read: %w", context.DeadlineExceeded)
	for _, test := range []struct {
		wanted *query.Filter
		data   any
	}{
		{&query.Filter{From: 1, To: 8}, "Try with this block range [0x1, 0x4]."},
		{&query.Filter{From: 1, To: 2}, "Try with this block range [0x1, 0x1]."},
		{&query.Filter{From: 5, To: 5}, nil},
		{nil, nil},
	} {
		var known *jsonrpc.Error
		if err := logsError(t.Context(), test.wanted, late); !errors.As(err, &known) || known.Code != -32005 || known.Message != "query timeout exceeded" || known.Data != test.data {
			t.Errorf("%v: got %v, want the data %v", test.wanted, err, test.data)
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := logsError(over, &query.Filter{From: 1, To: 8}, late); err != late {
		t.Errorf("after the caller's end: %v", err)
	}
}
