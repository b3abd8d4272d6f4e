package pool

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
)

// TestMissedTransactions fills the queue of a subscription that nothing follows. The pool goes
// on, and once the queue has been read, the subscription's log says how many were missed.
func TestMissedTransactions(t *testing.T) {
	b := newBench(t, DefaultLimits())
	var out bytes.Buffer
	subscription := b.pool.Subscribe(slog.New(slog.NewTextHandler(&out, nil)).With("network", "sepolia"))
	tx := b.transfer(0, 0, 2, 1)
	b.pool.mutex.Lock()
	for range subscriptionQueue + 3 {
		b.pool.notify(tx)
	}
	b.pool.mutex.Unlock()
	if missed := subscription.missed.Load(); missed != 3 {
		t.Errorf("%d transactions missed, expected 3", missed)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	read := 0
	err := subscription.Follow(ctx, func(*types.Transaction) error {
		if read++; read == subscriptionQueue {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) || read != subscriptionQueue {
		t.Errorf("Follow read %d transactions and returned %v", read, err)
	}
	if text := out.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "network=sepolia transactions=3\n") {
		t.Errorf("the log has %q, expected one line with the network and 3 transactions", text)
	}
}
