package node_test

import (
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ashlar/evm/source/node"
	"ashlar/internal/fakenode"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Transactions are sent, and pending ones received, whether or not the node supports
// subscriptions.
func TestPool(t *testing.T) {
	blocks := makeChain(t, 3)
	waiting := blocks[2].Transactions()
	n, client := start(t, fakenode.Options{Subscriptions: true, Pool: true}, true, blocks)
	if err := client.Send(t.Context(), marshal(t, waiting[1])); err != nil {
		t.Fatal(err)
	}
	n.Wait(waiting[0])
	all, err := client.Pool(t.Context())
	if err != nil || len(all) != 2 || all[0].Hash() != waiting[0].Hash() || all[1].Hash() != waiting[1].Hash() {
		t.Errorf("what waits: %d transactions, %v, expected two in the order of their nonces", len(all), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	received, done := make(chan common.Hash), make(chan error, 1)
	defer cancel()
	go func() {
		done <- client.SubscribePool(ctx, func(tx *types.Transaction) {
			select {
			case received <- tx.Hash():
			case <-ctx.Done():
			}
		})
	}()
	for i, want := range waiting {
		if i == 2 { // the earlier ones were in the pool before
			n.Wait(want)
		}
		select {
		case got := <-received:
			if got != want.Hash() {
				t.Errorf("notified of %x, expected %x", got, want.Hash())
			}
		case err := <-done:
			t.Fatalf("the subscription ended with %v", err)
		case <-time.After(time.Minute):
			t.Fatalf("no notification of %x", want.Hash())
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the subscription ended with %v", err)
	}

	refused := types.NewTx(&types.LegacyTx{Data: []byte(fakenode.RefusedData)})
	var refusal *node.RefusedError
	if err := client.Send(t.Context(), marshal(t, refused)); !errors.As(err, &refusal) || refusal.Code != -32000 || refusal.Message != fakenode.ErrRefused.Error() {
		t.Errorf("a transaction that is rejected: %v", err)
	}
	n.Close()
	if err := client.Send(t.Context(), marshal(t, waiting[0])); err == nil || errors.As(err, &refusal) {
		t.Errorf("a node that was stopped: %v", err)
	}
	if err := client.Send(t.Context(), marshal(t, waiting[0])); !errors.Is(err, node.ErrNotSent) {
		t.Errorf("a node that cannot be reached: %v", err)
	}

	_, client = start(t, fakenode.Options{}, false, blocks)
	if _, err := client.Pool(t.Context()); !errors.Is(err, node.ErrNoPool) {
		t.Errorf("a node without access to its pool: %v", err)
	}
	if err := client.SubscribePool(t.Context(), func(*types.Transaction) {}); !errors.Is(err, node.ErrNoSubscriptions) {
		t.Errorf("a node without subscriptions: %v", err)
	}
}

func marshal(t *testing.T, tx *types.Transaction) []byte {
	t.Helper()
	raw, err := tx.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A node does not have a transaction that it, or a proxy before it, has refused with an HTTP status.
func TestNotSent(t *testing.T) {
	for status, want := range map[int]bool{
		http.StatusForbidden: true, http.StatusTooManyRequests: true, http.StatusRequestTimeout: false, http.StatusBadGateway: false, http.StatusGatewayTimeout: false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		client, err := node.New(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Send(t.Context(), []byte{1}); err == nil || errors.Is(err, node.ErrNotSent) != want {
			t.Errorf("status %d: %v", status, err)
		}
		client.Close()
		server.Close()
	}
}

// A node to which there is no connection because of TLS does not have a transaction.
func TestNotSentByTLS(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	for name, address := range map[string]string{"an unknown certificate": secure.URL, "no TLS": "https" + strings.TrimPrefix(plain.URL, "http")} {
		client, err := node.New(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := client.Send(t.Context(), []byte{1}); !errors.Is(err, node.ErrNotSent) {
			t.Errorf("%s: %v", name, err)
		}
		client.Close()
	}
}
