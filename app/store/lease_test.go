package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ashlar/app/store"
	"ashlar/kv"
)

// TestAwaitLease: what waits for a lease says so once, with who has it and how long it waits,
// and gives up after that time.
func TestAwaitLease(t *testing.T) {
	for _, test := range []struct {
		most        time.Duration
		busy        int // attempts at which another process has the lease
		want        string
		unavailable bool // for the time given
	}{
		{most: time.Minute, busy: 2, want: "store=networks/test because=\"the store is in use: process 7 writes to it\" at_most=1m0s"},
		{busy: 2, want: "store=networks/test because=\"the store is in use: process 7 writes to it\"\n"},
		{most: time.Minute},
		{most: 100 * time.Millisecond, busy: 9, want: "at_most=100ms", unavailable: true},
	} {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		attempts := 0
		got, err := store.AwaitLease(t.Context(), "networks/test", test.most, func() (int, error) {
			if attempts++; attempts <= test.busy {
				return 0, fmt.Errorf("%w: process 7 writes to it", kv.ErrInUse)
			}
			return attempts, nil
		})
		slog.SetDefault(before)
		if lines := strings.Count(log.String(), "waiting for the lease"); lines != min(test.busy, 1) || !strings.Contains(log.String(), test.want) {
			t.Errorf("at most %v: the log has %q, want one line with %s", test.most, log.String(), test.want)
		}
		if test.unavailable != errors.Is(err, kv.ErrInUse) || err == nil && got != test.busy+1 {
			t.Errorf("at most %v: %d, %v", test.most, got, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := store.AwaitLease(ended, "networks/test", 0, func() (int, error) { return 0, kv.ErrInUse }); !errors.Is(err, context.Canceled) {
		t.Errorf("with an ended context: %v", err)
	}
}
