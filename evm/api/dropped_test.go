package api_test

import (
	"errors"
	"strings"
	"testing"

	"ashlar/evm/api"
	"ashlar/evm/ingest"

	"github.com/coder/websocket"
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
