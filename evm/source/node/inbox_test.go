package node_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ashlar/evm/source/node"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// flood sends 32 messages of 8 KiB to a subscriber while it asks for the pool.
type flood struct{ release chan struct{} }

func (f flood) NewPendingTransactions(ctx context.Context, _ bool) (*rpc.Subscription, error) {
	notifier, _ := rpc.NotifierFromContext(ctx)
	subscription := notifier.CreateSubscription()
	go func() {
		message := strings.Repeat("x", 8<<10)
		for range 32 {
			if notifier.Notify(subscription.ID, message) != nil {
				return
			}
		}
	}()
	return subscription, nil
}

func (f flood) Content() map[string]any {
	<-f.release
	return nil
}

// Messages that a node sends while earlier ones are handled do not fill the memory: the subscription ends.
func TestFlood(t *testing.T) {
	f, server := flood{make(chan struct{})}, rpc.NewServer()
	for _, name := range []string{"eth", "txpool"} {
		if err := server.RegisterName(name, f); err != nil {
			t.Fatal(err)
		}
	}
	http := httptest.NewServer(server.WebsocketHandler(nil))
	defer http.Close()
	defer server.Stop()
	defer close(f.release)
	client, err := node.New("ws" + strings.TrimPrefix(http.URL, "http"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	client.SetWait(64 << 10)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := client.SubscribePool(ctx, func(*types.Transaction) {}); err == nil || !strings.Contains(err.Error(), "more than 65536 bytes wait") {
		t.Errorf("the subscription ended with %v", err)
	}
}
