package differential

import (
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"ashlar/internal/jsondiff"
	"ashlar/internal/node"
	"ashlar/internal/sample"

	"github.com/coder/websocket"
)

// compareChainTraces subscribes to the traces of ranges of blocks, and expects the same
// notifications in the same order.
func compareChainTraces(t *testing.T, chain *sample.Chain, geth, ashlar *node.Client) {
	head := len(chain.Blocks) - 1
	ofGeth, ofAshlar := dial(t, geth), dial(t, ashlar)
	messages := 0
	for _, params := range [][]any{
		{"0x0", "0x5", object{"tracer": "callTracer", "tracerConfig": object{"withLog": true}}},
		{"0x10", "0x1a", object{"tracer": "prestateTracer", "tracerConfig": object{"diffMode": true}}},
		{"earliest", "0x3"},
		{"earliest", "0x3", nil},
		{quantity(uint64(head - 3)), "latest", object{"tracer": "flatCallTracer"}},
		{"0x7", "0x9", object{"tracer": "unknownTracer"}},
		{"0x7", "0x8", object{"tracer": `{result: function() { throw "no result" }, fault: function() {}}`}},
		{"0x5", "0x5"},
		{"0x6", "0x5"},
		{"0x6", quantity(uint64(head + 1))},
		{"0x6"},
		{},
	} {
		request, err := node.Request(1, "debug_subscribe", append([]any{"traceChain"}, params...)...)
		if err != nil {
			t.Fatal(err)
		}
		last := uint64(head)
		if len(params) > 1 && params[1] != "latest" {
			if _, err := fmt.Sscanf(params[1].(string), "0x%x", &last); err != nil {
				t.Fatal(err)
			}
		}
		want, got := ofGeth.traceChain(request, last), ofAshlar.traceChain(request, last)
		messages += len(want) - 2
		same(t, fmt.Sprint("debug_subscribe ", params), any(want), any(got))
	}
	for _, params := range []string{`["traceBlocks"]`, `[]`, `[1]`, `["traceChain","0x1"]`} {
		request := []byte(`{"jsonrpc":"2.0","id":1,"method":"debug_subscribe","params":` + params + `}`)
		same(t, "debug_subscribe "+params, ofGeth.ask(request), ofAshlar.ask(request))
	}
	if messages < 20 {
		t.Errorf("%d messages were compared, expected 20 and more", messages)
	}
}

// connection is a WebSocket of a client.
type connection struct {
	*testing.T
	*websocket.Conn
}

func dial(t *testing.T, c *node.Client) connection {
	t.Helper()
	conn, _, err := websocket.Dial(t.Context(), node.SocketURL(c.URL), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.SetReadLimit(-1)
	t.Cleanup(func() { _ = conn.CloseNow() })
	return connection{t, conn}
}

// ask sends a request and returns what comes next.
func (c connection) ask(request []byte) any {
	c.Helper()
	if err := c.Write(c.Context(), websocket.MessageText, request); err != nil {
		c.Fatal(err)
	}
	return c.next()
}

func (c connection) next() any {
	c.Helper()
	_, message, err := c.Read(c.Context())
	if err != nil {
		c.Fatal(err)
	}
	value, err := jsondiff.Decode(message)
	if err != nil {
		c.Fatal(err)
	}
	return value
}

// traceChain subscribes, receives the notifications up to that of the last block, and
// unsubscribes. It returns all that was received, without IDs and explanations of errors.
func (c connection) traceChain(request []byte, last uint64) (all []any) {
	c.Helper()
	answer := c.ask(request).(map[string]any)
	id, subscribed := answer["result"].(string)
	if !subscribed {
		failure := maps.Clone(answer["error"].(map[string]any))
		delete(failure, "data")
		return []any{failure}
	}
	for {
		message := c.next().(map[string]any)
		params := message["params"].(map[string]any)
		if params["subscription"] != id {
			c.Fatalf("a notification of %v, expected one of %s", params["subscription"], id)
		}
		result := params["result"].(map[string]any)
		all = append(all, map[string]any{"method": message["method"], "result": result})
		if result["block"] == fmt.Sprintf("%#x", last) {
			break
		}
	}
	ended := c.ask(json.RawMessage(`{"jsonrpc":"2.0","id":2,"method":"debug_unsubscribe","params":["` + id + `"]}`))
	again := c.ask(json.RawMessage(`{"jsonrpc":"2.0","id":2,"method":"debug_unsubscribe","params":["` + id + `"]}`))
	return append(all, ended, again)
}
