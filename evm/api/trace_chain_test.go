package api_test

import (
	"strings"
	"testing"

	"ashlar/evm/api"
	"ashlar/evm/ingest"
)

// A range of blocks to trace does not end with the pending block, which is another one when its turn comes: the connection
// would end then, with all of its subscriptions.
func TestTraceChainRefusesPending(t *testing.T) {
	l, made := serveLive(t, ingest.DefaultDepths(), api.Config{}), newBranches(t)
	block := made.block(made.genesis, 1)
	l.add(block)
	l.setHead(block)
	socket := l.dial(firstKey)
	for _, ends := range []string{`"0x0","pending"`, `"pending","pending"`} {
		socket.send(`{"jsonrpc":"2.0","id":1,"method":"debug_subscribe","params":["traceChain",` + ends + `]}`)
		if answer := socket.receive(); !strings.Contains(answer, "tracing on top of pending is not supported") {
			t.Errorf("%s: %s", ends, answer)
		}
	}
}
