package beacon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/evm/source/beacon/lightclient"
	"ashlar/evm/source/engine"
	"ashlar/internal/beaconnode"

	"github.com/ethereum/go-ethereum/common"
)

// replay serves a recorded chain up to a slot, as a beacon node.
type replay struct {
	*recorded
	mu    sync.Mutex
	until uint64                                // guarded by mu
	alter func(path string, body []byte) []byte // nil: answers are true
	asked []string                              // guarded by mu
	hold  chan struct{}                         // guarded by mu; until it is closed nothing is answered; nil: at once
}

// ServeHTTP implements [http.Handler].
func (r *replay) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	path := strings.TrimPrefix(req.URL.Path, "/eth/v1/")
	r.asked = append(r.asked, path)
	if hold := r.hold; hold != nil {
		r.mu.Unlock()
		select {
		case <-hold:
		case <-req.Context().Done():
		}
		r.mu.Lock()
	}
	var answer any
	switch path {
	case "beacon/genesis":
		answer = map[string]any{"data": map[string]any{"genesis_time": fmt.Sprint(r.Genesis.Time), "genesis_validators_root": r.Genesis.Root}}
	case "config/spec":
		answer = map[string]any{"data": r.Spec}
	case "beacon/light_client/bootstrap/" + r.Trusted.Hex():
		answer = r.Bootstrap
	case "beacon/light_client/finality_update":
		answer = r.last("")
	case "beacon/light_client/updates":
		answer = []any{}
		if next := r.last(req.FormValue("start_period")); next != nil {
			answer = []any{next}
		}
	}
	if answer == nil || answer == (*versioned)(nil) {
		http.NotFound(w, req)
		return
	}
	body, _ := json.Marshal(answer)
	if r.alter != nil {
		body = r.alter(path, body)
	}
	_, _ = w.Write(body)
}

// last returns the last update up to the slot: with the next committee one of a period, without
// if the period is empty.
func (r *replay) last(period string) *versioned {
	for _, s := range slices.Backward(r.Steps) {
		var u lightclient.Update
		if s.Slot > r.until || s.decode(&u) != nil {
			continue
		}
		const slots = 64 // of a period
		if period == "" && u.NextBranch == nil || u.NextBranch != nil && period == fmt.Sprint(u.Attested.Beacon.Slot/slots) {
			return &s.versioned
		}
	}
	return nil
}

// count returns how often the node was asked for a path that ends so.
func (r *replay) count(end string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, path := range r.asked {
		if strings.HasSuffix(path, end) {
			n++
		}
	}
	return n
}

// stop has the node hold its answers back until the function is called that it returns.
func (r *replay) stop() (release func()) {
	hold := make(chan struct{})
	set := func(to chan struct{}) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.hold = to
	}
	set(hold)
	return func() { set(nil); close(hold) }
}

// memory keeps a checkpoint. It implements [Keeper].
type memory struct {
	saved Checkpoint
	err   error
	full  error // of Save
}

func (m *memory) Load(context.Context) (Checkpoint, error) { return m.saved, m.err }
func (m *memory) Save(_ context.Context, c Checkpoint) error {
	if m.full == nil {
		m.saved = c
	}
	return m.full
}

// following is a follower of recorded nodes with a clock of its own.
type following struct {
	*Follower
	nodes []*replay
	slot  uint64
	named []engine.Forkchoice
	kept  *memory
}

// follow returns a follower of some nodes that serve a recorded chain.
func follow(t *testing.T, count int, change func(*Config)) *following {
	t.Helper()
	r := new(recorded)
	if err := json.Unmarshal(beaconnode.Vectors(t, chains[0].epochs, chains[0].forks...), r); err != nil {
		t.Fatal(err)
	}
	f := &following{kept: new(memory)}
	config := Config{Checkpoint: r.Trusted, Keeper: f.kept, Log: slog.New(slog.DiscardHandler)}
	config.Now = func() time.Time { return r.chain(t).TimeOf(f.slot) }
	config.Name = func(_ context.Context, to engine.Forkchoice) error { f.named = append(f.named, to); return nil }
	for i := range count {
		node := &replay{recorded: r}
		server := httptest.NewServer(node)
		t.Cleanup(server.Close)
		template, err := http.NewRequest(http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.nodes = append(f.nodes, node)
		config.Nodes = append(config.Nodes, NewNode(fmt.Sprintf("node %d", i), template))
	}
	if change != nil {
		change(&config)
	}
	f.Follower = New(config)
	t.Cleanup(f.asking.Wait) // before the servers end
	return f
}

// answered returns the answers of the nodes that hold nothing back, in the order of the nodes.
func (f *following) answered() (answers []answer) {
	awaited := 0
	for i, n := range f.nodes {
		n.mu.Lock()
		if n.hold == nil && !f.Follower.nodes[i].since.IsZero() {
			awaited++
		}
		n.mu.Unlock()
	}
	for range awaited {
		answers = append(answers, <-f.answers)
	}
	slices.SortFunc(answers, func(a, b answer) int { return strings.Compare(a.n.name, b.n.name) })
	return answers
}

// at has the clock show a slot, up to which the nodes have the chain, and asks the nodes that
// have nothing to answer, until those that hold nothing back have nothing more to say.
func (f *following) at(t *testing.T, slot uint64) error {
	t.Helper()
	for _, n := range f.nodes {
		n.mu.Lock()
		n.until = slot
		n.mu.Unlock()
	}
	f.slot = slot
	f.round(t.Context())
	for answers := f.answered(); len(answers) > 0; answers = f.answered() {
		for _, a := range answers {
			f.use(t.Context(), a)
		}
	}
	if problem := f.Status().Problem; problem != "" {
		return errors.New(problem)
	}
	return nil
}

// A light client goes through two periods of sync committees slot by slot, and names each new
// head; it begins anew where it stopped if a node has that block, else at its checkpoint.
func TestFollow(t *testing.T) {
	f := follow(t, 1, nil)
	last := f.nodes[0].Steps[len(f.nodes[0].Steps)-1].Slot
	failed := 0
	for slot := f.nodes[0].Steps[0].Slot; slot <= last; slot++ {
		if err := f.at(t, slot); err != nil {
			failed++
		}
	}
	s := f.Status()
	if failed > 2 || s.Problem != "" || s.Head.Number+3 < last || s.Finalized.Number <= 64 || s.PeriodsBehind != 0 || len(f.named) < 60 {
		t.Errorf("%d rounds failed, %d heads, %+v", failed, len(f.named), s)
	}
	for _, to := range f.named {
		if to.Safe != to.Finalized || to.Head == to.Finalized {
			t.Errorf("named %+v, expected the finalized block as the safe one, before the head", to)
		}
	}
	if f.kept.saved.Slot != s.Finalized.Number || f.kept.saved.Root != f.store.Finalized().Beacon.Root() {
		t.Errorf("kept is %+v, finalized %+v", f.kept.saved, s.Finalized)
	}
	again := follow(t, 1, func(c *Config) { c.Keeper = f.kept })
	if err := again.at(t, last); err == nil || !strings.Contains(err.Error(), "the last finalized one") {
		t.Errorf("without the last finalized block: %v", err)
	}
	if err := again.at(t, last+uint64(fallBackTime/again.nodes[0].chain(t).SlotTime)); err != nil {
		t.Error(err)
	}
	first := fmt.Sprintf("beacon/light_client/bootstrap/%#x", f.kept.saved.Root)
	second := fmt.Sprintf("beacon/light_client/bootstrap/%#x", again.nodes[0].Trusted)
	if i, j := slices.Index(again.nodes[0].asked, first), slices.Index(again.nodes[0].asked, second); i < 0 || j < i {
		t.Errorf("asked for %v, expected %s and then %s", again.nodes[0].asked, first, second)
	}
}

// The status names each fault of a node, blames no honest node, and the head follows while another
// node answers.
func TestFaultyNodes(t *testing.T) {
	replace := func(at, from, by string) func(string, []byte) []byte {
		return func(path string, body []byte) []byte {
			if strings.HasPrefix(path, at) {
				return []byte(strings.ReplaceAll(string(body), from, by))
			}
			return body
		}
	}
	const update = "beacon/light_client/finality"
	for name, test := range map[string]struct {
		alter   func(string, []byte) []byte
		want    string // part of why the node is not used
		invalid bool
	}{
		"false header":      {replace(update, `"body_root":"0x`, `"body_root":"0xf`), "", false}, // no JSON of a hash any more
		"other header":      {replace(update, `"proposer_index":"1`, `"proposer_index":"2`), "false light client data", true},
		"other chain":       {replace("beacon/genesis", `_root":"0x`, `_root":"0x0`), "genesis", false},
		"wrong fork":        {replace("config/spec", `"0x06000001"`, `"0x06000002"`), "not one of these signers", true},
		"fork of tomorrow":  {replace(update, `"version":"fulu"`, `"version":"heze"`), `unknown fork "heze"`, false},
		"few signers":       {replace(update, `"sync_committee_bits":"0xffffffff"`, `"sync_committee_bits":"0xffff0f00"`), "20 of 32 members", false},
		"from the future":   {replace(update, `"signature_slot":"`, `"signature_slot":"9`), "the clock shows", false},
		"late clock":        {replace("beacon/genesis", `"genesis_time":"0"`, `"genesis_time":"90000"`), "the clock shows", false},
		"no JSON":           {func(string, []byte) []byte { return []byte("<html>") }, "read the answer", false},
		"endless answer":    {func(string, []byte) []byte { return make([]byte, answerBytes+1) }, "is larger than", false},
		"no such bootstrap": {replace("beacon/light_client/bootstrap", `"slot":"`, `"slot":"1`), "bootstrap is of block", true},
	} {
		t.Run(name, func(t *testing.T) {
			f := follow(t, 2, nil)
			f.nodes[0].alter = test.alter
			start := f.nodes[0].Steps[0].Slot
			for slot := start; slot < start+14; slot++ {
				_ = f.at(t, slot) // until the first signatures there is none
			}
			s := f.Status()
			bad, good := s.Nodes[0], s.Nodes[1]
			if s.Problem != "" || len(f.named) < 5 || good.Why != "" {
				t.Errorf("with a good node: %d heads, %+v", len(f.named), s)
			}
			if !strings.Contains(bad.Why, test.want) || bad.Why == "" || (bad.Invalid > 0) != test.invalid || bad.Aside.IsZero() == test.invalid {
				t.Errorf("the bad node: %+v, expected %q, invalid: %t", bad, test.want, test.invalid)
			}
		})
	}
}

// A light client says why it does not begin.
func TestNoBeginning(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"unknown checkpoint": {func(c *Config) { c.Checkpoint = common.Hash{1} }, "want a finalized block"},
		"another chain":      {func(c *Config) { c.Known = &lightclient.Chain{GenesisValidatorsRoot: common.Hash{1}} }, "expected 0x01"},
		"unreadable store":   {func(c *Config) { c.Keeper = &memory{err: errors.New("broken")} }, "broken"},
		"silent node": {func(c *Config) {
			template, _ := http.NewRequest(http.MethodGet, "http://127.0.0.1:1/?key=secret", nil)
			c.Nodes = []*Node{NewNode("silent", template)}
		}, "silent"},
	} {
		f := follow(t, 1, test.change)
		err := f.at(t, f.nodes[0].Steps[0].Slot)
		if s := f.Status(); err == nil || !strings.Contains(s.Problem, test.want) || strings.Contains(s.Problem, "secret") || len(f.named) > 0 {
			t.Errorf("%s: %v, %+v", name, err, s)
		}
	}
}
