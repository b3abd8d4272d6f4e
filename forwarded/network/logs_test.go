package network

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"ashlar/forwarded/forwardtest"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Logs of any range are asked for in parts that the node allows, and joined.
func TestLogsAreSplit(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 5000, Final: 4900, LogsPer: 1})
	n.Range = 500
	w := serve(t, newStore(t), nil, n)
	w.atHead(5000)
	var logs []struct{ BlockNumber string }
	if err := json.Unmarshal([]byte(w.call("eth_getLogs", `[{"fromBlock":"0x0","toBlock":"latest"}]`)), &logs); err != nil || len(logs) != 5001 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for i, log := range logs {
		if log.BlockNumber != fmt.Sprintf("%#x", i) {
			t.Fatalf("log %d is of block %s", i, log.BlockNumber)
		}
	}
	if asked := n.Count("eth_getLogs"); asked > 14 { // eleven parts, and tries of larger ones
		t.Errorf("the node was asked %d times", asked)
	}
	n.Set(func(n *forwardtest.Node) { n.Range, n.Results = 0, 100 })
	if err := json.Unmarshal([]byte(w.call("eth_getLogs", `[{"fromBlock":"0x0","toBlock":"0x3e7","topics":[]}]`)), &logs); err != nil || len(logs) != 1000 {
		t.Errorf("%d logs, %v", len(logs), err)
	}
}

// A part of a range that a node refuses is asked for in shorter ones only if the words can mean that it is too long. Words that
// are not known get one short part: if it is answered, they mean that.
func TestRefusedLogs(t *testing.T) {
	for _, c := range []struct {
		code    int
		message string
		least   uint64 // blocks that are refused
		logs    int    // of 5001 blocks; 0: an error
		most    int    // requests
	}{
		{-32000, "maximum [from, to] blocks distance: 2000", 2001, 5001, 4},
		{-32000, "block range %d exceeds maximum of 1000", 1001, 5001, 8},
		{-32000, "range %d exceeds maximum of 1000", 1001, 5001, 8},
		{-32000, "query block range (%d) exceeds server limit (1000)", 1001, 5001, 8},
		{-32000, "you sent a block range of %d", 1001, 5001, 12},
		{-32000, "that is not for me: %d blocks", 1001, 5001, 40},
		{-32002, "request timed out", 700, 5001, 20},
		{-32000, "that is not for me", 1, 0, 2},
		{-32000, "that is not for me", 700, 5001, 40},
		{-32000, "internal error", 700, 5001, 40},
		{19, "Temporary internal error. Please retry", 700, 5001, 40},
		{-32000, "service temporarily unavailable", 1, 0, 2},
		{-32005, "limit exceeded", 1, 0, 2},
		{-32602, "the list of addresses is too big", 1, 0, 2},
		{-32600, "request body too large", 1, 0, 2},
		{429, "Too many requests", 1, 0, 1},
		{-32601, "the method eth_getLogs does not exist/is not available", 1, 0, 1},
		{4444, "pruned history unavailable", 1, 0, 1},
		{-32000, "network not allowed: the key's rules do not list mainnet", 1, 0, 1},
	} {
		n := node(t, forwardtest.Chain{Head: 5000, LogsPer: 1})
		w := serve(t, newStore(t), nil, n)
		w.atHead(5000)
		n.Set(func(n *forwardtest.Node) {
			n.Answer = func(method string, params []json.RawMessage) (any, *forwardtest.Error, bool) {
				var f struct{ FromBlock, ToBlock hexutil.Uint64 }
				if method != "eth_getLogs" || json.Unmarshal(params[0], &f) != nil || uint64(f.ToBlock-f.FromBlock)+1 < c.least {
					return nil, nil, false
				}
				// Some nodes name the distance of the range that they refuse.
				message := strings.Replace(c.message, "%d", strconv.Itoa(int(f.ToBlock-f.FromBlock)), 1)
				return nil, &forwardtest.Error{Code: c.code, Message: message}, true
			}
		})
		var logs []json.RawMessage
		got := w.call("eth_getLogs", `[{"fromBlock":"0x0","toBlock":"latest"}]`)
		if err := json.Unmarshal([]byte(got), &logs); (err == nil) != (c.logs > 0) || len(logs) != c.logs {
			t.Errorf("%d %s: %d logs, %v, expected %d: %.100s", c.code, c.message, len(logs), err, c.logs, got)
		}
		if asked := n.Count("eth_getLogs"); asked > c.most {
			t.Errorf("%d %s: asked %d times, expected at most %d", c.code, c.message, asked, c.most)
		}
	}
}

// The cap of 10,000 logs suggests a range that has no more.
func TestLogsAreCapped(t *testing.T) {
	for _, results := range []int{0, 5000} {
		n := node(t, forwardtest.Chain{Head: 300, LogsPer: 70})
		n.Results = results
		w := serve(t, newStore(t), nil, n)
		w.atHead(300)
		w.expect("eth_getLogs", `[{"fromBlock":"0x0","toBlock":"latest"}]`, "-32005 query returned more than 10000 results Try with this block range [0x0, 0x8d].")
		w.expect("eth_getLogs", `[{"fromBlock":"0x0","toBlock":"0x8d"}]`, "…blockHash")
		for _, c := range []struct{ params, want string }{
			{`[{"fromBlock":"0x5","toBlock":"0x4"}]`, "-32602 invalid block range params"},
			{`[{"fromBlock":"0x5","toBlock":"0x400"}]`, "-32602 block range extends beyond current head block"},
			{`[{"blockHash":"0x` + strings.Repeat("1", 64) + `"}]`, "-32000 unknown block"},
			{fmt.Sprintf(`[{"blockHash":"%#x","fromBlock":"0x1"}]`, n.Chain.Hash(1)), "-32602 invalid argument 0: cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other"},
			{fmt.Sprintf(`[{"blockHash":"%#x","topics":["%#x"]}]`, n.Chain.Hash(1), forwardtest.Topic(200)), "[]"},
		} {
			w.expect("eth_getLogs", c.params, c.want)
		}
	}
	n := node(t, forwardtest.Chain{Head: 3, LogsPer: 10_001, Final: 2})
	w := serve(t, newStore(t), nil, n)
	w.expect("eth_getLogs", `[{"fromBlock":"0x0","toBlock":"latest"}]`, "-32005 query returned more than 10000 results")
}

// A search for logs that takes too long suggests half of its range, because indexers ask again for a
// shorter range only if one is suggested.
func TestSlowLogsSuggestARange(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 10})
	n.Between = func(_ http.ResponseWriter, r *http.Request) bool {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		if !bytes.Contains(body, []byte("eth_getLogs")) {
			return false
		}
		<-r.Context().Done() // never answered
		return true
	}
	w := serveWithin(t, 50*time.Millisecond, newStore(t), nil, n)
	w.atHead(10)
	w.expect("eth_getLogs", `[{"fromBlock":"0x2","toBlock":"0x9"}]`, "-32005 query timeout exceeded Try with this block range [0x2, 0x5].")
	w.expect("eth_getLogs", `[{"fromBlock":"0x2","toBlock":"0x3"}]`, "-32005 query timeout exceeded Try with this block range [0x2, 0x2].")
	w.expect("eth_getLogs", `[{"fromBlock":"0x2","toBlock":"0x2"}]`, "-32005 query timeout exceeded")
	w.expect("eth_getLogs", fmt.Sprintf(`[{"blockHash":"%#x"}]`, n.Chain.Hash(2)), "-32005 query timeout exceeded")
}

// reth takes null at the end of the topics for nothing, geth for a topic that must be there. A node
// that sends logs with fewer topics is honest, and they are left out.
func TestTopicsThatLogsDoNotHave(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 9, LogsPer: 2})
	w := serve(t, newStore(t), nil, n)
	w.atHead(9)
	topic := forwardtest.Topic(0).Hex()
	w.expect("eth_getLogs", fmt.Sprintf(`[{"fromBlock":"0x1","toBlock":"0x9","topics":["%s",null]}]`, topic), "[]")
	w.expect("eth_getLogs", fmt.Sprintf(`[{"fromBlock":"0x1","toBlock":"0x9","topics":["%s"]}]`, topic), "…"+topic)
	if s := w.network.pool.Status()[0]; s.Lies != 0 || !s.Usable {
		t.Errorf("the node: %+v", s)
	}
}

// A part of a range whose logs are larger than an answer may be is asked for in smaller parts, and the
// node is not left alone because of it.
func TestLogsThatAreTooLarge(t *testing.T) {
	n := node(t, forwardtest.Chain{Head: 9, LogsPer: 1})
	w := serve(t, newStore(t), nil, n)
	w.atHead(9)
	n.Set(func(n *forwardtest.Node) {
		n.Between = func(out http.ResponseWriter, r *http.Request) bool {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(body))
			if !bytes.Contains(body, []byte(`"toBlock":"0x9"`)) || bytes.Contains(body, []byte(`"fromBlock":"0x5"`)) {
				return false
			}
			_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":1,"result":["`)
			for chunk := strings.Repeat("00", 1<<19); ; {
				if _, err := io.WriteString(out, chunk); err != nil {
					return true
				}
			}
		}
	})
	var logs []any
	if err := json.Unmarshal([]byte(w.call("eth_getLogs", `[{"fromBlock":"0x0","toBlock":"latest"}]`)), &logs); err != nil || len(logs) != 10 {
		t.Errorf("%d logs, %v, want 10", len(logs), err)
	}
	if s := w.network.pool.Status()[0]; !s.Usable {
		t.Errorf("the node: %+v", s)
	}
}
