package verified

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ashlar/internal/node"
)

// liar is a group of nodes that pass requests on to an honest node and alter some of the answers.
// What is altered depends on the seed, the node and the request alone, so that a run can be
// repeated.
type liar struct {
	to    *node.Client
	chain *chain
	seed  uint64
	share int         // percentage of altered answers
	agree bool        // all nodes tell the same lies; they name the head as it is
	begun atomic.Bool // before, they lie only if they do not agree

	mu    sync.Mutex
	asked map[string]int // guarded by mu: how often a request was sent to a node
	told  map[string]int // guarded by mu: lies by kind
}

// newLiar starts a number of nodes in front of an honest one, and returns their URLs.
func newLiar(t *testing.T, l *liar, nodes int) (urls []string) {
	t.Helper()
	l.asked, l.told = make(map[string]int), make(map[string]int)
	server := httptest.NewServer(l)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	for i := range nodes {
		urls = append(urls, server.URL+"/"+strconv.Itoa(i))
	}
	return urls
}

// call is a request, with what is altered of it.
type call struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

// readCalls decodes a request and reports whether it is a batch.
func readCalls(body []byte) (calls []call, batch bool) {
	if json.Unmarshal(body, &calls) == nil {
		return calls, true
	}
	calls = make([]call, 1)
	_ = json.Unmarshal(body, &calls[0])
	return calls, false
}

// random returns the source of what a node does with a request. A node that is asked again may
// do something else, unless all nodes tell the same lies.
func (l *liar) random(place string, c *call) *rand.Rand {
	key := c.Method + string(c.Params)
	if !l.agree {
		l.mu.Lock()
		key = place + key
		l.asked[key]++
		key += strconv.Itoa(l.asked[key])
		l.mu.Unlock()
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(key))
	return rand.New(rand.NewPCG(l.seed, hash.Sum64()))
}

// tell records a lie.
func (l *liar) tell(kind string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told[kind]++
}

// lies returns how many lies were told, and of which kinds.
func (l *liar) lies() (sum int, kinds map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kinds = make(map[string]int)
	for kind, n := range l.told {
		kinds[kind] = n
		sum += n
	}
	return sum, kinds
}

// ServeHTTP implements [http.Handler].
func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	calls, batch := readCalls(body)
	if len(calls) == 0 {
		http.Error(w, "no calls", http.StatusBadRequest)
		return
	}
	random := l.random(r.URL.Path, &calls[0])
	if !l.agree && random.IntN(100) < l.share && random.IntN(10) == 0 && l.mayLie(&calls[0]) {
		kind := transportLies[random.IntN(len(transportLies))]
		l.tell(kind.name)
		kind.answer(w, r)
		return
	}
	var answers [][]byte
	for i := range calls {
		answer, err := l.answer(r, &calls[i])
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		answers = append(answers, answer)
	}
	w.Header().Set("Content-Type", "application/json")
	if !batch {
		_, _ = w.Write(answers[0])
		return
	}
	if len(answers) > 1 && random.IntN(100) < l.share && random.IntN(6) == 0 {
		l.tell("batch without an answer")
		answers = answers[1:]
	}
	_, _ = w.Write(append(append([]byte{'['}, bytes.Join(answers, []byte{','})...), ']'))
}

// mayLie reports whether a call may be answered falsely. The chain's ID never is, so that the
// nodes are used. Nodes that agree on lies name the head as it is: which head is right cannot be
// proven.
func (l *liar) mayLie(c *call) bool {
	return c.Method != "eth_chainId" && !(l.agree && (!l.begun.Load() || followsHead(c.Method, c.Params)))
}

// answer returns the answer to a call, or a lie.
func (l *liar) answer(r *http.Request, c *call) ([]byte, error) {
	random := l.random(r.URL.Path, c)
	lies := random.IntN(100) < l.share && l.mayLie(c)
	asked := *c
	var kind lie
	if lies {
		kind = answerLies[random.IntN(len(answerLies))]
		if kind.ask != nil {
			asked.Params = kind.ask(l.chain, random, c.Params)
		}
	}
	request, err := json.Marshal(asked)
	if err != nil {
		return nil, err
	}
	_, answer, err := l.to.Post(r.Context(), request)
	if err != nil || !lies {
		return answer, err
	}
	var whole map[string]json.RawMessage
	if json.Unmarshal(answer, &whole) != nil {
		return answer, nil
	}
	if kind.alter != nil {
		if !kind.alter(random, whole) {
			return answer, nil // there is nothing to alter
		}
	} else if bytes.Equal(asked.Params, c.Params) {
		return answer, nil
	}
	l.tell(kind.name)
	return json.Marshal(whole)
}

// followsHead reports whether a call is one of those that follow the head.
func followsHead(method string, params json.RawMessage) bool {
	switch method {
	case "eth_chainId", "eth_blockNumber", "eth_syncing":
		return true
	case "eth_getBlockByNumber":
		for _, tag := range []string{`"latest"`, `"safe"`, `"finalized"`} {
			if strings.Contains(string(params), tag) {
				return true
			}
		}
	}
	return false
}
