package upstream

import (
	"encoding/json"
	"testing"
)

// Refusals of eth_getLogs that nodes and providers send are told apart: whether a shorter range can help decides whether
// one is asked for.
func TestExcess(t *testing.T) {
	for _, c := range []struct {
		code    int
		message string
		data    string
		want    Excess
	}{
		{-32005, "query returned more than 10000 results. Try with this block range [0xBDE5F8, 0x102DBCC].", `{"from":"0xBDE5F8","limit":10000,"to":"0x102DBCC"}`, SurelyExcess},
		{-32602, "invalid params", `"Query returned more than 50000 results. Try with this block range [0x1000000, 0x1080000]."`, SurelyExcess},
		{-32602, "Invalid params", `"requested block range 16777217 exceeds the limit of 200; narrow your fromBlock/toBlock"`, SurelyExcess},
		{-32000, "block range too large, max range: 10000", "", SurelyExcess},
		{-32000, "query returned more than allowed number of logs, try with smaller block range", "", SurelyExcess},
		{-32000, "exceeded maximum block range: 5000", "", SurelyExcess},
		{-32000, "logs matched by query exceeds limit of 10000", "", SurelyExcess},
		{-32000, "maximum [from, to] blocks distance: 2000", "", SurelyExcess},
		{-32000, "requested too many blocks from 50331648 to 51380224, maximum is set to 2048", "", SurelyExcess},
		{-32000, "too wide blocks range, the limit is 100", "", SurelyExcess},
		{-32000, "GetLogs query must be smaller than size 1024", "", SurelyExcess},
		{-32602, "range 16777216 exceeds limit of 10000", "", SurelyExcess},
		{-32602, "eth_getLogs is limited to 0 - 50 blocks range", "", SurelyExcess},
		{-32614, "eth_getLogs is limited to a 10,000 range", "", SurelyExcess},
		{-32602, "query exceeds range, retry smaller (max block range 5000, got 16777216)", "", SurelyExcess},
		{-32602, "block range greater than 10000 max", "", SurelyExcess},
		{-32600, "You can make eth_getLogs requests with up to a 10 block range. Based on your parameters, this block range should work: [0x18b0000, 0x18b0009]", "", SurelyExcess},
		{-32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range", "", SurelyExcess},
		{-32047, "Invalid eth_getLogs request. 'fromBlock'-'toBlock' range too large. Max range: 800", "", SurelyExcess},
		{-32012, "getLogs request exceeded max allowed range", "", SurelyExcess},
		{35, "ranges over 10000 blocks are not supported on freetier", "", SurelyExcess},
		{-32701, "exceed maximum block range: 50000", "", SurelyExcess},
		{-32000, "Maximum allowed number of requested blocks is 10000", "", SurelyExcess},
		{-32008, "Response is too big", `"Exceeded max limit of 167772160"`, SurelyExcess},
		{-32000, "response too large", "", SurelyExcess},
		{-32000, "the result is too large", "", SurelyExcess},
		{-32000, "the answer of the upstream node is too large: ask for less", "", SurelyExcess}, // another Ashlar
		{-32000, "number of blocks is too big", "", SurelyExcess},
		{-32000, "too large block range", "", SurelyExcess},
		{-32602, "query exceeds max results 20000, retry with the range 24383075-24383096", "", SurelyExcess},
		{-32602, "query block range exceeds server limit, narrow your filter: 5.", "", SurelyExcess},
		{-32000, "block range is too wide (maximum 1024)", "", SurelyExcess},
		{-32000, "block range is larger than max block range, block range = 5120, max block range = 5000", "", SurelyExcess},
		{-32005, "eth_getLogs block range too large, range: 855077, max: 3500", "", SurelyExcess},
		{-32001, "Block range too large: maximum allowed is 20000 blocks", "", SurelyExcess},
		{-32600, "block range too high", "", SurelyExcess},
		{-32000, "block range is bigger than maxBlockRange", "", SurelyExcess},
		{-32000, "Query timeout exceeded. Consider reducing your block range. Based on your parameters and the response size limit, this block range should work: [0x5223c98, 0x5223e80]", "", SurelyExcess},
		{-32002, "request timed out", "", SurelyExcess},
		{-32000, "context deadline exceeded", "", SurelyExcess},
		{-32005, "some limit was reached", "", SurelyExcess},

		{-32005, "limit exceeded", "", PerhapsExcess}, // BNB Smart Chain, where it means that there are no logs
		{-32000, "these are too many for me", "", PerhapsExcess},
		{-32602, "invalid params", `"expected a hash"`, PerhapsExcess},
		{-32602, "the list of addresses is too big", "", PerhapsExcess},
		{-32600, "request body too big", "", PerhapsExcess},
		{-32000, "the call is too large for the upstream nodes: send less data", "", PerhapsExcess},
		{-32602, "argument too large", "", PerhapsExcess},
		{-32600, "request entity too large", "", PerhapsExcess},
		{-32603, "oops", "", PerhapsExcess},
		{-32000, "internal error", "", PerhapsExcess},
		{19, "Temporary internal error. Please retry", "", PerhapsExcess},
		{-32000, "service temporarily unavailable", "", PerhapsExcess},
		{-32000, "eth_getLogs request limit is 5000 blocks", "", PerhapsExcess},         // not of requests
		{-32011, "no backend is currently healthy to serve traffic", "", PerhapsExcess}, // also if the range is too long

		{429, "Too many requests", "", NoExcess},
		{429, "request timed out", "", NoExcess},
		{4444, "request timed out", "", NoExcess},
		{-32000, "service unavailable: try again later", "", NoExcess},
		{-32005, "request rate exceeded", "", NoExcess},
		{-32005, "daily quota exceeded", "", NoExcess},
		{-32601, "the method eth_getLogs does not exist/is not available", "", NoExcess},
		{-32602, "Archive requests require a personal token", "", NoExcess},
		{4444, "pruned history unavailable", "", NoExcess},
		{-32000, "header not found", "", NoExcess},
		{-32602, "block range extends beyond current head block", "", NoExcess},
		{-32000, "no upstream node can answer now: try again later", "", NoExcess},
		{-32002, "network not allowed: the key's rules do not list narrow", "", NoExcess},
	} {
		if got := ExcessOf(&NodeError{Code: c.code, Message: c.message, Data: json.RawMessage(c.data)}); got != c.want {
			t.Errorf("%d %s %s: %d, expected %d", c.code, c.message, c.data, got, c.want)
		}
	}
}
