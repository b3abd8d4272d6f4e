package conformance

import (
	"fmt"
	"testing"
)

func TestParseConversation(t *testing.T) {
	c, err := parseConversation("eth_x/y", "// why\n// speconly: shape\n>> {\"id\":1}\n<< {\"id\":1,\"result\":1}\n\n>> 2\n<< 3\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%s %v %s", c.Method, c.ShapeOnly, c.Exchanges); got != `eth_x true [{{"id":1} {"id":1,"result":1}} {2 3}]` {
		t.Error(got)
	}
	for _, text := range []string{"", "// only\n", ">> 1\n", "<< 1\n", ">> 1\n>> 2\n<< 3\n", ">> 1\nx\n<< 2\n"} {
		if _, err := parseConversation("eth_x/y", text); err == nil {
			t.Errorf("%q was accepted", text)
		}
	}
}

func TestCompare(t *testing.T) {
	block := Conversation{Method: "eth_getBlockByHash"}
	shape := Conversation{Method: "eth_estimateGas", ShapeOnly: true}
	tests := []struct {
		name          string
		c             Conversation
		recorded, got string
		wrong, worded int
	}{
		{"equal", block, `{"jsonrpc":"2.0","id":1,"result":{"a":"0x1"}}`, `{"id":1,"result":{"a":"0x1"},"jsonrpc":"2.0"}`, 0, 0},
		{"other value", block, `{"jsonrpc":"2.0","id":1,"result":{"a":"0x1"}}`, `{"jsonrpc":"2.0","id":1,"result":{"a":"0x2"}}`, 1, 0},
		{"total difficulty", block, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{"totalDifficulty":"0x2"}}`, 0, 0},
		{"total difficulty lost", block, `{"jsonrpc":"2.0","id":1,"result":{"totalDifficulty":"0x2"}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, 1, 0},
		{"other id", block, `{"jsonrpc":"2.0","id":1,"result":1}`, `{"jsonrpc":"2.0","id":"1","result":1}`, 1, 0},
		{"error for result", block, `{"jsonrpc":"2.0","id":1,"result":1}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":""}}`, 1, 0},
		{"null result", block, `{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"result":null}`, 0, 0},
		{"both", block, `{"jsonrpc":"2.0","id":1,"result":null}`, `{"jsonrpc":"2.0","id":1,"result":null,"error":{}}`, 1, 0},
		{"not JSON", block, `{"jsonrpc":"2.0","id":1,"result":null}`, `<html>`, 1, 0},
		{"shape", shape, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`, `{"jsonrpc":"2.0","id":1,"result":"0x2"}`, 0, 0},
		{"other shape", shape, `{"jsonrpc":"2.0","id":1,"result":"0x1"}`, `{"jsonrpc":"2.0","id":1,"result":2}`, 1, 0},
		{"other code", block, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"x"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"x"}}`, 1, 0},
		{"other message", block, `{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"y"}}`, 1, 0},
		{"free message", block, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"x"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"y"}}`, 0, 1},
		{"fixed message", block, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"invalid block range params"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"y"}}`, 1, 0},
		{"lost data", block, `{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x","data":"0x"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":3,"message":"x"}}`, 1, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			wrong, worded := test.c.compare([]byte(test.recorded), []byte(test.got))
			if len(wrong) != test.wrong || len(worded) != test.worded {
				t.Errorf("wrong %q, worded otherwise %q", wrong, worded)
			}
		})
	}
}
