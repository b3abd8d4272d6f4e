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

// A node that holds its answers back holds up no other one, is asked once, and is shown as slow. Its
// answer is used when it comes.
func TestSlowNode(t *testing.T) {
	for _, begun := range []bool{false, true} {
		f := follow(t, 2, nil)
		slow, start := f.nodes[0], f.nodes[0].Steps[0].Slot
		if begun {
			for ; len(f.named) < 2; start++ {
				_ = f.at(t, start)
			}
		}
		asked, named := slow.count(""), len(f.named)
		release := slow.stop()
		for slot := start; slot < start+14; slot++ {
			_ = f.at(t, slot)
		}
		s := f.Status()
		if len(f.named) < named+5 || s.Problem != "" || s.Nodes[1].Why != "" || s.Nodes[1].Slot < start+10 {
			t.Errorf("begun: %t: beside a slow node: %d heads, then %d, %+v", begun, named, len(f.named), s)
		}
		if !strings.Contains(s.Nodes[0].Why, "slow: no answer for 1m") || s.Nodes[0].Failures > 0 {
			t.Errorf("begun: %t: the slow node: %+v", begun, s.Nodes[0])
		}
		if more := slow.count("") - asked; more > 2 { // finality and optimistic side by side
			t.Errorf("begun: %t: the slow node was asked %d times: %v", begun, more, slow.asked)
		}
		release()
		_ = f.at(t, start+14)
		if s := f.Status(); s.Nodes[0].Slot < start+10 || begun && !strings.Contains(s.Nodes[0].Why, "slow: its last answer took 1m") {
			t.Errorf("begun: %t: the slow node has answered: %+v", begun, s.Nodes[0])
		}
		_ = f.at(t, start+15)
		if s := f.Status(); s.Nodes[0].Why != "" || s.Problem != "" {
			t.Errorf("begun: %t: the node is quick again: %+v", begun, s)
		}
	}
}

// A node that claims a header of a later committee has to give that committee: it is at fault if
// it does not, and no other node is asked because of it.
func TestClaimedCommittee(t *testing.T) {
	asked := func(lies bool) (int, NodeStatus) {
		f := follow(t, 2, nil)
		if lies {
			f.nodes[0].alter = func(path string, body []byte) []byte {
				text := strings.Replace(string(body), `"signature_slot":"`, `"signature_slot":"9`, 1)
				if path == "config/spec" { // by its clock that slot is past
					text = strings.NewReplacer(`"SLOT_DURATION_MS":"6000"`, `"SLOT_DURATION_MS":"100"`).Replace(text)
				} else if path == "beacon/light_client/updates" {
					text = "[]"
				}
				return []byte(text)
			}
		}
		start := f.nodes[0].Steps[0].Slot
		for slot := start; slot < start+24; slot++ {
			_ = f.at(t, slot)
		}
		if s := f.Status(); len(f.named) < 10 || s.Problem != "" {
			t.Errorf("lies: %t: %d heads, %+v", lies, len(f.named), s)
		}
		return f.nodes[1].count("updates"), f.Status().Nodes[0]
	}
	honest, _ := asked(false)
	beside, liar := asked(true)
	if beside > honest+3 { // it answers the searches of the other one
		t.Errorf("the honest node was asked for committees %d times, without the liar %d times", beside, honest)
	}
	if liar.Failures < 2 || !strings.Contains(liar.Why, errNoCommittee.Error()) {
		t.Errorf("the liar: %+v", liar)
	}
}

// The head does not wait for a store that refuses to save, and what is wrong is shown.
func TestFailingSave(t *testing.T) {
	f := follow(t, 1, nil)
	f.kept.full = errors.New("the disk is full")
	last := f.nodes[0].Steps[len(f.nodes[0].Steps)-1].Slot
	for slot := f.nodes[0].Steps[0].Slot; slot <= last; slot++ {
		_ = f.at(t, slot)
	}
	s := f.Status()
	if s.Finalized.Number <= 64 || s.Head.Number+3 < last || f.named[len(f.named)-1].Head != s.Head.Block || !strings.Contains(s.Problem, "the disk is full") {
		t.Errorf("%d heads, %+v", len(f.named), s)
	}
	f.kept.full = nil
	if err := f.at(t, last+1); err != nil || f.kept.saved.Slot != s.Finalized.Number {
		t.Errorf("after that %v, kept is %+v", err, f.kept.saved)
	}
}

// A node that hides the block that was saved last does not make the client begin with an old
// checkpoint, unless no other node has it for a while. Nothing older than that block is then
// saved or named.
func TestOldCheckpoint(t *testing.T) {
	const days = 24 * 3600 / 6 // in slots
	wait := uint64(fallBackTime / (6 * time.Second))
	for name, test := range map[string]struct {
		known       bool // the chain is
		saved, now  uint64
		begins, end bool // at once; after some time
	}{
		"both new":          {true, 5 * days, 5*days + 10, true, true},
		"old":               {true, 29 * days, 30 * days, false, true},
		"both old":          {true, 10 * days, 30 * days, true, true},
		"clock of the node": {false, 5 * days, 5*days + 10, false, true},
		"newer than saved":  {false, 1, 30 * days, true, true},
	} {
		f := follow(t, 2, func(c *Config) {
			c.Keeper.(*memory).saved = Checkpoint{Root: common.Hash{1}, Slot: test.saved}
		})
		if test.known {
			f.config.Known = f.nodes[0].chain(t)
		}
		saved := f.kept.saved
		f.nodes[1].alter = func(string, []byte) []byte { return nil } // it fails
		for _, then := range []struct {
			slot   uint64
			begins bool
		}{{test.now, test.begins}, {test.now + wait - 1, test.begins}, {test.now + 2*wait, test.end}} {
			err := f.at(t, then.slot)
			if (f.store != nil) != then.begins || !then.begins && !strings.Contains(err.Error(), "the last finalized one") {
				t.Errorf("%s: in slot %d: begun: %t, %v", name, then.slot, f.store != nil, err)
			}
		}
		if test.saved > 1 && (len(f.named) > 0 || f.kept.saved != saved) {
			t.Errorf("%s: %d heads, kept is %+v", name, len(f.named), f.kept.saved)
		}
	}
}

// Run names heads while a node holds its answer back, and has ended all requests when it returns.
func TestRun(t *testing.T) {
	heads := make(chan struct{}, 1)
	f := follow(t, 2, func(c *Config) {
		c.Name = func(context.Context, engine.Forkchoice) error {
			select {
			case heads <- struct{}{}:
			default:
			}
			return nil
		}
	})
	f.nodes[0].stop()
	f.slot = f.nodes[0].Steps[0].Slot + 14
	for _, n := range f.nodes {
		n.until = f.slot
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- f.Run(ctx) }()
	<-heads
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	waiting := 0
	for _, n := range f.Follower.nodes {
		if !n.since.IsZero() {
			waiting++
		}
	}
	if len(f.answers) != waiting {
		t.Errorf("%d nodes had not answered, %d requests have ended", waiting, len(f.answers))
	}
	if s := f.Status(); s.Head.Number == 0 || s.Nodes[0].Invalid > 0 || s.Nodes[1].Why != "" {
		t.Errorf("%+v", s)
	}
}
