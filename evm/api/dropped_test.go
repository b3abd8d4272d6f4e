package api_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/evm/api"
	"ashlar/evm/ingest"
	"ashlar/feed"

	"github.com/coder/websocket"
	"github.com/ethereum/go-ethereum/core/types"
)

// When the changes of the chain cannot be read, subscriptions and filters are dropped. New
// ones work.
func TestDroppedSubscribersAndFilters(t *testing.T) {
	l, made := serveLive(t, ingest.DefaultDepths(), api.Config{}), newBranches(t)
	newFilter := func() (id string) {
		answer := l.post(firstKey, `{"jsonrpc":"2.0","id":1,"method":"eth_newFilter","params":[{}]}`)
		return strings.TrimSuffix(strings.TrimPrefix(answer, `{"jsonrpc":"2.0","id":1,"result":"`), `"}`)
	}
	poll := func(id string) string {
		return l.post(firstKey, `{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["`+id+`"]}`)
	}
	subscribe := func(params string) *liveSocket {
		socket := l.dial(firstKey)
		socket.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":` + params + `}`)
		socket.receive()
		return socket
	}
	filter := newFilter()
	sockets := []*liveSocket{subscribe(`["newHeads"]`), subscribe(`["logs",{}]`), subscribe(`["logs",{"address":"` + logger.Hex() + `"}]`)}
	if answer := poll(filter); !strings.Contains(answer, `"result":[]`) {
		t.Fatalf("the filter answers %s", answer)
	}
	l.api.DropAll()
	for _, socket := range sockets {
		_, _, err := socket.conn.Read(t.Context())
		if closed := (websocket.CloseError{}); !errors.As(err, &closed) || closed.Code != websocket.StatusTryAgainLater {
			t.Errorf("a subscriber got %v, expected an end with %d", err, websocket.StatusTryAgainLater)
		}
	}
	if answer := poll(filter); !strings.Contains(answer, "filter not found") {
		t.Errorf("the filter answers %s", answer)
	}
	filter = newFilter()
	heads := subscribe(`["newHeads"]`)
	block := made.block(made.genesis, 2)
	l.add(block)
	l.setHead(block)
	if received := heads.receive(); !strings.Contains(received, block.Hash().Hex()) {
		t.Errorf("a new subscriber is notified of %s", received)
	}
	if answer := poll(filter); strings.Count(answer, block.Hash().Hex()) != 2 {
		t.Errorf("a new filter gives %s", answer)
	}
}

// When the head goes back to an ancestor, subscribers to heads and filters for blocks get it again, as with geth: otherwise they would
// keep the dropped blocks until a new one comes. Its logs do not come again.
func TestHeadGoesBackToAnAncestor(t *testing.T) {
	l, made := serveLive(t, ingest.DefaultDepths(), api.Config{}), newBranches(t)
	first := made.block(made.genesis, 1)
	second := made.block(first, 1)
	third := made.block(second, 1)
	subscribe := func(params string) *liveSocket {
		socket := l.dial(firstKey)
		socket.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":` + params + `}`)
		socket.receive()
		return socket
	}
	heads, logs, receipts := subscribe(`["newHeads"]`), subscribe(`["logs",{}]`), subscribe(`["transactionReceipts",{}]`)
	answer := l.post(firstKey, `{"jsonrpc":"2.0","id":1,"method":"eth_newBlockFilter","params":[]}`)
	filter := strings.TrimSuffix(strings.TrimPrefix(answer, `{"jsonrpc":"2.0","id":1,"result":"`), `"}`)
	for _, block := range []*types.Block{first, second, third} {
		l.add(block)
	}
	l.setHead(third)
	for _, block := range []*types.Block{first, second, third} {
		for _, socket := range []*liveSocket{heads, logs, receipts} {
			if received := socket.receive(); !strings.Contains(received, block.Hash().Hex()) {
				t.Fatalf("block %d: received %s", block.NumberU64(), received)
			}
		}
	}
	l.setHead(first)
	if received := heads.receive(); !strings.Contains(received, `"hash":"`+first.Hash().Hex()) {
		t.Errorf("heads: received %s", received)
	}
	for _, block := range []*types.Block{third, second} {
		if received := logs.receive(); !strings.Contains(received, block.Hash().Hex()) || !strings.Contains(received, `"removed":true`) {
			t.Errorf("logs: received %s, expected the removed ones of block %d", received, block.NumberU64())
		}
	}
	l.setHead(second)
	for _, socket := range []*liveSocket{heads, logs, receipts} {
		if received := socket.receive(); !strings.Contains(received, second.Hash().Hex()) || strings.Contains(received, `"removed":true`) {
			t.Errorf("received %s, expected block 2", received)
		}
	}
	var want []string
	for _, block := range []*types.Block{first, second, third, first, second} {
		want = append(want, block.Hash().Hex())
	}
	polled := l.post(firstKey, `{"jsonrpc":"2.0","id":1,"method":"eth_getFilterChanges","params":["`+filter+`"]}`)
	if !strings.Contains(polled, `["`+strings.Join(want, `","`)+`"]`) {
		t.Errorf("the filter gives %s, expected %v", polled, want)
	}
}

// The transactions that subscriptions to receipts name are in memory, so they are counted as the
// addresses and topics of other subscriptions.
func TestReceiptSubscriptionsAreBounded(t *testing.T) {
	l := serveLive(t, ingest.DefaultDepths(), api.Config{Filters: feed.Limits{Bytes: 128 << 10}})
	hashes := fmt.Sprintf(`"0x%064x"`, 0)
	for i := 1; i < 200; i++ {
		hashes += fmt.Sprintf(`,"0x%064x"`, i)
	}
	socket := l.dial(firstKey)
	taken, refused := 0, 0
	for range 20 {
		socket.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["transactionReceipts",{"transactionHashes":[` + hashes + `]}]}`)
		if answer := socket.receive(); strings.Contains(answer, `"result"`) {
			taken++
		} else if strings.Contains(answer, "too many subscriptions: expected fewer transactions in them, or try again later") {
			refused++
		} else {
			t.Fatal(answer)
		}
	}
	if taken == 0 || taken > 8 || taken+refused != 20 {
		t.Errorf("%d subscriptions of 200 transactions are taken and %d refused, of which 64 KiB may be held", taken, refused)
	}
	socket.send(`{"jsonrpc":"2.0","id":1,"method":"eth_subscribe","params":["transactionReceipts"]}`)
	if answer := socket.receive(); !strings.Contains(answer, `"result"`) {
		t.Errorf("a subscription to all receipts: %s", answer)
	}
}
