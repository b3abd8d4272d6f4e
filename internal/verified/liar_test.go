package verified

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"ashlar/internal/conformance"
	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

var seed = flag.Uint64("seed", 1, "seed of the lies")

// liar passes requests on to a node and alters some of the answers.
type liar struct {
	to *node.Client

	mu    sync.Mutex
	r     *rand.Rand     // guarded by mu
	share int            // guarded by mu: percentage of altered answers
	lies  map[string]int // guarded by mu: by method
}

// newLiar returns a liar in front of a node, and its URL.
func newLiar(t *testing.T, to *node.Client, share int) (*liar, string) {
	l := &liar{to: to, r: rand.New(rand.NewPCG(*seed, 25)), share: share, lies: make(map[string]int)}
	server := httptest.NewServer(l)
	t.Cleanup(server.Close)
	return l, server.URL
}

// call is a request, with what is altered of it.
type call struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  json.RawMessage `json:"params"`
}

func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var calls []call
	batch := json.Unmarshal(body, &calls) == nil
	if !batch {
		calls = make([]call, 1)
		if err := json.Unmarshal(body, &calls[0]); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	var answers [][]byte
	for _, c := range calls {
		one, _ := json.Marshal(c)
		_, answer, err := l.to.Post(r.Context(), one)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		answers = append(answers, l.alter(c.Method, answer))
	}
	w.Header().Set("Content-Type", "application/json")
	if !batch {
		_, _ = w.Write(answers[0])
		return
	}
	_, _ = w.Write(append(append([]byte{'['}, bytes.Join(answers, []byte{','})...), ']'))
}

// alter lies now and then. The chain's identity is told as it is, so that the node is used.
func (l *liar) alter(method string, answer []byte) []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	var whole map[string]json.RawMessage
	if method == "eth_chainId" || l.r.IntN(100) >= l.share || json.Unmarshal(answer, &whole) != nil || whole["result"] == nil {
		return answer
	}
	var result any
	if json.Unmarshal(whole["result"], &result) != nil {
		return answer
	}
	switch l.r.IntN(4) {
	case 0:
		result = nil
	default:
		result = l.bend(result)
	}
	altered, err := json.Marshal(result)
	if err != nil || bytes.Equal(altered, whole["result"]) {
		return answer
	}
	whole["result"] = altered
	l.lies[method]++
	answer, _ = json.Marshal(whole)
	return answer
}

// bend alters one thing in a value: a digit, or the number or order of the items of a list.
func (l *liar) bend(value any) any {
	switch v := value.(type) {
	case string:
		if len(v) > 2 && strings.HasPrefix(v, "0x") {
			digits := []byte(v)
			digits[2+l.r.IntN(len(v)-2)] = "0123456789abcdef"[l.r.IntN(16)]
			return string(digits)
		}
	case bool:
		return !v
	case []any:
		if len(v) == 0 {
			return v
		}
		i := l.r.IntN(len(v))
		switch l.r.IntN(4) {
		case 0:
			return slices.Delete(slices.Clone(v), i, i+1)
		case 1:
			bent := slices.Clone(v)
			bent[0], bent[i] = bent[i], bent[0]
			return bent
		case 2:
			return append(slices.Clone(v), v[i])
		}
		bent := slices.Clone(v)
		bent[i] = l.bend(v[i])
		return bent
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		if len(keys) == 0 {
			return v
		}
		slices.Sort(keys)
		key := keys[l.r.IntN(len(keys))]
		if l.r.IntN(8) == 0 {
			delete(v, key)
		} else {
			v[key] = l.bend(v[key])
		}
	}
	return value
}

// TestVerified replays the conversations of ethereum/execution-apis on a network that is
// proven over geth, and again while one of two nodes lies at random in every method. No answer
// differs; the liar is named in the log and set aside.
func TestVerified(t *testing.T) {
	folder := vectors.Path(t, "execution-apis")
	conversations, err := conformance.ReadConversations(folder)
	if err != nil {
		t.Fatal(err)
	}
	genesis := filepath.Join(folder, "genesis.json")
	geth := serveGeth(t, genesis, filepath.Join(folder, "chain.rlp"))
	head := headOf(t, geth)
	_, honest := serveVerified(t, genesis, 1, head, geth.URL)
	expectVerification(t, honest)
	l, url := newLiar(t, geth, 5)
	p, lied := serveVerified(t, genesis, 1, head, url, geth.URL)
	answered := 0
	for _, c := range conversations {
		t.Run(c.Name, func(t *testing.T) {
			if why, postponed := conformance.Postponed(c.Name); postponed {
				t.Skip("later: " + why)
			}
			conformance.Replay(t, honest, c)
			for _, e := range c.Exchanges {
				want, got := post(t, honest, e.Request), post(t, lied, e.Request)
				if bytes.Equal(want, got) {
					answered++
				} else if !refused(got) {
					t.Errorf("with a liar: %.600s\ngot  %.600s\nwant %.600s", e.Request, got, want)
				}
			}
		})
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lies) == 0 || answered < len(conversations)/2 {
		t.Errorf("%d answers are equal, lies by method: %v", answered, l.lies)
	}
	if log := p.Output(); !strings.Contains(log, "the node sent a false answer") || !strings.Contains(log, url) {
		t.Errorf("the log does not name %s:\n%s", url, log)
	}
}

func headOf(t *testing.T, c *node.Client) uint64 {
	t.Helper()
	var block struct{ Number string }
	if err := c.Call(t.Context(), &block, "eth_getBlockByNumber", "latest", false); err != nil {
		t.Fatal(err)
	}
	return parseQuantity(t, block.Number)
}

func post(t *testing.T, c *node.Client, request []byte) []byte {
	t.Helper()
	_, answer, err := c.Post(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// refused reports whether an answer is an error.
func refused(answer []byte) bool {
	var a node.Answer
	return json.Unmarshal(answer, &a) == nil && a.Error != nil
}

func parseQuantity(t *testing.T, quantity string) uint64 {
	t.Helper()
	number, err := strconv.ParseUint(strings.TrimPrefix(quantity, "0x"), 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return number
}
