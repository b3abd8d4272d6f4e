package upstream_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/node"
	"ashlar/internal/fakenode"
	"ashlar/internal/raced"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// The testing package parses flags, so a test's flags are package variables.
var wholeFlag = flag.Bool("whole", false, "alter every value of every block")

// middle is a man in the middle between a node and its clients.
type middle struct {
	mu    sync.Mutex
	alter func(body []byte) []byte // guarded by mu; nil: no change. A nil result drops the connection
}

func (m *middle) set(alter func([]byte) []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alter = alter
}

func (m *middle) between(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		to.ServeHTTP(answer, r)
		body := answer.Body.Bytes()
		m.mu.Lock()
		alter := m.alter
		m.mu.Unlock()
		if alter != nil {
			if body = alter(body); body == nil {
				panic(http.ErrAbortHandler) // makes net/http close the connection
			}
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(body)
	})
}

// startFake starts a node for the demo chain, at first with only its genesis.
func startFake(t *testing.T, options fakenode.Options) (*fakenode.Node, *node.Client, []*types.Block) {
	t.Helper()
	genesis := ingesttest.Genesis(t)
	options.ChainID = genesis.Config.ChainID.Uint64()
	chain := append([]*types.Block{genesis.ToBlock()}, ingesttest.Chain(t)...)
	n, err := fakenode.New(options, chain[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	client, err := node.New(n.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return n, client, chain
}

// paths lists the paths of all values in a JSON value.
func paths(value any, at []string) (all [][]string) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			all = append(all, paths(member, append(slices.Clone(at), name))...)
		}
	case []any:
		all = append(all, at) // the value itself
		for i, member := range value {
			all = append(all, paths(member, append(slices.Clone(at), strconv.Itoa(i)))...)
		}
	default:
		all = append(all, at)
	}
	return all
}

// altered returns a JSON value with a different value at a path.
func altered(value any, at []string) any {
	if len(at) == 0 {
		return other(value)
	}
	switch value := value.(type) {
	case map[string]any:
		value[at[0]] = altered(value[at[0]], at[1:])
	case []any:
		i, _ := strconv.Atoi(at[0])
		value[i] = altered(value[i], at[1:])
	}
	return value
}

// other returns a different value of the same kind, if there is one.
func other(value any) any {
	switch value := value.(type) {
	case string:
		if len(value) < 3 {
			return "0x1"
		}
		text := []byte(value)
		last := &text[len(text)-1]
		if *last = *last ^ 1; *last == '`' || *last == 'g' {
			*last = '9'
		}
		return string(text)
	case []any:
		if len(value) > 1 {
			return value[1:]
		}
		return []any{}
	case bool:
		return !value
	}
	return "0x1"
}

// TestEveryFieldAltered alters every value of blocks in transit. No altered block is
// accepted.
func TestEveryFieldAltered(t *testing.T) {
	raced.Skip(t)
	m := new(middle)
	n, client, chain := startFake(t, fakenode.Options{Between: m.between})
	n.Set(chain, 0, 0)
	f := newFollower(t, ingest.DefaultDepths())
	tried, harmless := 0, map[string]bool{}
	for number, want := range chain[1:] {
		if number%16 != 0 && !*wholeFlag { // two blocks with some hundred values each
			mustAdd(t, f, want)
			continue
		}
		right := objectOf(t, n, want)
		for _, path := range paths(right, nil) {
			m.set(func(body []byte) []byte {
				return alterResults(body, func(result any) any { return altered(result, path) })
			})
			tried++
			block, err := client.Block(t.Context(), want.Hash())
			if err == nil && sameBytes(block, want) {
				harmless[path[len(path)-1]] = true // ignored, or derived from other fields
				continue
			}
			if err == nil {
				err = f.Add(t.Context(), block)
			}
			if err == nil {
				t.Fatalf("block %d got in with another value at %v", want.NumberU64(), path)
			}
			var refused *execute.CheckError
			var invalid *node.InvalidError
			if !errors.As(err, &refused) && !errors.As(err, &invalid) {
				t.Errorf("block %d with another value at %v: %v", want.NumberU64(), path, err)
			}
		}
		m.set(nil)
		mustAdd(t, f, want)
	}
	t.Logf("%d values altered; harmless were %v", tried, harmless)
}

func mustAdd(t *testing.T, f *follower, block *types.Block) {
	t.Helper()
	if err := f.Add(t.Context(), block); err != nil {
		t.Fatal(err)
	}
}

func sameBytes(a, b *types.Block) bool {
	one, err1 := rlp.EncodeToBytes(a)
	two, err2 := rlp.EncodeToBytes(b)
	return err1 == nil && err2 == nil && bytes.Equal(one, two)
}

// objectOf returns a block as the node's JSON.
func objectOf(t *testing.T, n *fakenode.Node, block *types.Block) any {
	t.Helper()
	request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByHash","params":["%s",true]}`, block.Hash())
	response, err := http.Post(n.URL(), "application/json", bytes.NewReader([]byte(request)))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Result map[string]any }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Result
}

// alterResults changes the results of an answer or of each answer in a batch.
func alterResults(body []byte, change func(result any) any) []byte {
	var answer any
	if json.Unmarshal(body, &answer) != nil {
		return body
	}
	list, ok := answer.([]any)
	if !ok {
		list = []any{answer}
	}
	for _, one := range list {
		if one, ok := one.(map[string]any); ok && one["result"] != nil {
			one["result"] = change(one["result"])
		}
	}
	out, err := json.Marshal(answer)
	if err != nil {
		return body
	}
	return out
}

// A liar who alters a header and everything derived from it makes a block with its own
// hash. It is accepted only if the rules leave the block's producer that choice.
func TestConsistentLiar(t *testing.T) {
	chain := ingesttest.Chain(t)
	f := newFollower(t, ingest.DefaultDepths())
	mustAdd(t, f, chain[0])
	free := map[string]bool{"Extra": true, "MixDigest": true}
	for name, alter := range map[string]func(*types.Header){
		"ParentHash":       func(h *types.Header) { h.ParentHash[0]++ },
		"UncleHash":        func(h *types.Header) { h.UncleHash[0]++ },
		"Coinbase":         func(h *types.Header) { h.Coinbase[0]++ },
		"Root":             func(h *types.Header) { h.Root[0]++ },
		"TxHash":           func(h *types.Header) { h.TxHash[0]++ },
		"ReceiptHash":      func(h *types.Header) { h.ReceiptHash[0]++ },
		"Bloom":            func(h *types.Header) { h.Bloom[0]++ },
		"Difficulty":       func(h *types.Header) { h.Difficulty.SetUint64(1) },
		"Number":           func(h *types.Header) { h.Number.SetUint64(7) },
		"GasLimit":         func(h *types.Header) { h.GasLimit *= 2 },
		"GasUsed":          func(h *types.Header) { h.GasUsed++ },
		"Time":             func(h *types.Header) { h.Time++ },
		"Extra":            func(h *types.Header) { h.Extra = []byte("another") },
		"MixDigest":        func(h *types.Header) { h.MixDigest[0]++ },
		"Nonce":            func(h *types.Header) { h.Nonce[0]++ },
		"BaseFee":          func(h *types.Header) { h.BaseFee.SetUint64(1) },
		"no BaseFee":       func(h *types.Header) { h.BaseFee = nil },
		"WithdrawalsHash":  func(h *types.Header) { h.WithdrawalsHash[0]++ },
		"BlobGasUsed":      func(h *types.Header) { *h.BlobGasUsed += 1 << 17 },
		"no BlobGasUsed":   func(h *types.Header) { h.BlobGasUsed = nil },
		"ExcessBlobGas":    func(h *types.Header) { *h.ExcessBlobGas++ },
		"ParentBeaconRoot": func(h *types.Header) { h.ParentBeaconRoot[0]++ },
		"RequestsHash":     func(h *types.Header) { h.RequestsHash[0]++ },
	} {
		header := types.CopyHeader(chain[1].Header())
		alter(header)
		err := f.Add(t.Context(), types.NewBlockWithHeader(header).WithBody(*chain[1].Body()))
		if (err == nil) != free[name] {
			t.Errorf("a block with another %s: %v, expected it to be let in: %t", name, err, free[name])
		}
	}
	mustAdd(t, f, chain[1])
}

// TestManInTheMiddle follows a chain while answers are dropped, delayed, repeated,
// reordered and altered at random. No wrong block is ever visible, and once the mischief
// ends, the head is reached.
func TestManInTheMiddle(t *testing.T) {
	for _, raw := range []bool{true, false} {
		t.Run(fmt.Sprint("raw ", raw), func(t *testing.T) {
			t.Parallel()
			m := new(middle)
			n, client, blocks := startFake(t, fakenode.Options{Between: m.between, Raw: raw})
			f := newFollower(t, ingest.Depths{Unfinalized: 12, Most: 12})
			right := make(map[chain.Ref]bool)
			for _, block := range blocks {
				right[ref(block)] = true
			}
			unwatch := f.watch(func(head chain.Ref) {
				if !right[head] {
					t.Errorf("block %s was visible", head)
				}
			})
			p, stop := f.pursue(t, client)
			mischief := newMischief(3)
			for head := 1; head < len(blocks); head += 3 {
				m.set(mischief.alter)
				n.Set(blocks[:head+1], 0, 0)
				time.Sleep(30 * time.Millisecond) // time for many faults
				// On a slow machine, too, there are some.
				until(t, "a fault of each kind", func() bool {
					c := counted(p)
					return head > 1 || c.Failures > 0 && c.Invalid > 0
				})
				m.set(nil)
				f.await(ref(blocks[head]))
			}
			stop()
			unwatch()
			t.Logf("%+v", counted(p))
		})
	}
}

// counted returns the counts of the only node.
func counted(p *upstream.Pursuit) upstream.Counts { return p.Status().Nodes[0].Counts }

// mischief makes random changes to answers.
type mischief struct {
	mu     sync.Mutex
	random *rand.Rand // guarded by mu
	before any        // guarded by mu; an earlier result
}

func newMischief(seed uint64) *mischief { return &mischief{random: rand.New(rand.NewPCG(seed, 1))} }

func (m *mischief) alter(body []byte) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch m.random.IntN(7) {
	case 0: // dropped
		return nil
	case 1: // cut
		return body[:m.random.IntN(len(body))]
	case 2: // delayed
		time.Sleep(time.Millisecond)
		return body
	case 3: // repeated
		return alterResults(body, func(result any) any {
			if m.before == nil || m.random.IntN(2) == 0 {
				m.before = result
			}
			return m.before
		})
	case 4: // reordered
		var results []any
		alterResults(body, func(result any) any { results = append(results, result); return result })
		m.random.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
		return alterResults(body, func(any) any { r := results[0]; results = results[1:]; return r })
	case 5: // altered
		return alterResults(body, func(result any) any {
			places := paths(result, nil)
			return altered(result, places[m.random.IntN(len(places))])
		})
	}
	return body
}
