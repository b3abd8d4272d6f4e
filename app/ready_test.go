package app

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"ashlar/app/config"
	"ashlar/evm/ingest/ingesttest"
	evm "ashlar/evm/network"
	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/internal/fakenode"

	"github.com/ethereum/go-ethereum/core/types"
)

// fixed is a network that says what its test tells it to.
type fixed struct {
	family.Network
	status family.Status
}

func (f fixed) Status(context.Context) (family.Status, error) { return f.status, nil }

// TestNotReadySinceAnUnknownFork: a network that is behind because of a fork says so, and
// not before the fork has come.
func TestNotReadySinceAnUnknownFork(t *testing.T) {
	for name, test := range map[string]struct {
		fork *family.UnknownFork
		want string // at the end of the reason
	}{
		"no fork":      {nil, "expected at most 1m0s"},
		"a fork later": {&family.UnknownFork{Name: "Bogota", Time: time.Now().Add(time.Hour).Unix()}, "expected at most 1m0s"},
		"a fork since": {&family.UnknownFork{Name: "Bogota", Time: 1_700_000_000}, "expected at most 1m0s: the fork Bogota came at 2023-11-14T22:13:20Z, and this version does not know it; install a later version to get the blocks since"},
	} {
		s := &Service{networks: []*Network{{Name: "n", Network: fixed{status: family.Status{HeadTime: 1_600_000_000, UnknownFork: test.fork}}}}}
		err := s.ready(t.Context(), config.Config{Networks: map[string]config.Network{"n": {Behind: time.Minute}}})
		if err == nil || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q at the end", name, err, test.want)
		}
	}
}

// TestNotReady: a network that follows is ready if it is near the head, or its chain is
// idle; others always are.
func TestNotReady(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	fresh, old := uint64(now.Unix()-60), uint64(now.Unix()-1000)
	for name, test := range map[string]struct {
		status family.Status
		want   string // in the reason; empty: ready
	}{
		"follows nothing":            {family.Status{HeadTime: 1, Refused: "full"}, ""},
		"at the head":                {family.Status{HeadTime: fresh, Source: &family.SourceStatus{Reached: true}}, ""},
		"nodes gone for a while":     {family.Status{HeadTime: fresh, Source: &family.SourceStatus{}}, ""},
		"nodes gone":                 {family.Status{HeadTime: old, Source: &family.SourceStatus{Problem: "refused"}}, "16m40s old, and no upstream is usable: refused"},
		"the first node refuses":     {family.Status{Source: &family.SourceStatus{Problem: "refused"}}, "it has no block above 0, and no upstream is usable: refused"},
		"no node has answered yet":   {family.Status{HeadTime: old, Source: &family.SourceStatus{}}, "16m40s old, and no upstream is usable: none has answered yet"},
		"nodes disagree":             {family.Status{HeadTime: fresh, Source: &family.SourceStatus{Problem: "no agreement", Agreement: &family.AgreementStatus{Quorum: 2, Since: now.Unix() - 60}}}, ""},
		"nodes disagree for long":    {family.Status{HeadTime: fresh, Source: &family.SourceStatus{Problem: "no agreement", Agreement: &family.AgreementStatus{Quorum: 2, Since: now.Unix() - 600}}}, "its upstreams do not agree since 2027-01-15T07:50:00Z: no agreement"},
		"nodes set aside":            {family.Status{HeadTime: fresh, Source: &family.SourceStatus{Upstreams: []family.UpstreamStatus{{Aside: now.Unix() + 600}, {Aside: now.Unix() + 60}}}}, "set aside because of false answers, the first until 2027-01-15T08:01:00Z"},
		"one node set aside":         {family.Status{HeadTime: fresh, Source: &family.SourceStatus{Upstreams: []family.UpstreamStatus{{Aside: now.Unix() + 600}, {}}}}, ""},
		"idle":                       {family.Status{HeadTime: old, Source: &family.SourceStatus{Reached: true}}, ""},
		"a little behind":            {family.Status{HeadTime: fresh, Head: 5, Source: &family.SourceStatus{Reached: true, Best: farBehind + 5, Behind: farBehind}}, ""},
		"far behind":                 {family.Status{HeadTime: fresh, Head: 5, Source: &family.SourceStatus{Reached: true, Best: farBehind + 6, Behind: farBehind + 1}}, "33 blocks behind"},
		"nodes' head is shown":       {family.Status{HeadTime: fresh, Head: 990, Source: &family.SourceStatus{Reached: true, Best: 1000, Behind: 900}}, ""},
		"an old one of nodes":        {family.Status{HeadTime: fresh, Head: 900, Source: &family.SourceStatus{Reached: true, Best: 1000, Behind: 990}}, "100 blocks behind"},
		"stopped":                    {family.Status{HeadTime: fresh, Source: &family.SourceStatus{Reached: true}, Stopped: &family.Stopped{Why: "broken", Since: 1_799_999_999}}, "stopped since 2027-01-15T07:59:59Z: broken"},
		"stopped demo":               {family.Status{HeadTime: old, Stopped: &family.Stopped{Why: "full", Since: 1_799_999_999}}, "making or settling blocks is stopped since 2027-01-15T07:59:59Z: full"},
		"full":                       {family.Status{HeadTime: fresh, Source: &family.SourceStatus{Reached: true}, Refused: "full"}, "its store refuses writes: full"},
		"client silent":              {family.Status{HeadTime: old, Consensus: &family.ConsensusStatus{Forkchoice: int64(old)}}, "its consensus client is silent"},
		"client without a head":      {family.Status{HeadTime: old, Consensus: &family.ConsensusStatus{Payload: int64(fresh), Forkchoice: int64(old)}}, "its consensus client sends blocks but names no head"},
		"light client sees nothing":  {family.Status{HeadTime: old, Consensus: &family.ConsensusStatus{Forkchoice: int64(old)}, LightClient: &family.LightClientStatus{Problem: "no beacon node can be used"}}, "its light client has verified no newer head: no beacon node can be used"},
		"client at an idle head":     {family.Status{HeadTime: old, Consensus: &family.ConsensusStatus{Forkchoice: int64(fresh)}}, ""},
		"client's head is unreached": {family.Status{HeadTime: old, Consensus: &family.ConsensusStatus{Forkchoice: int64(fresh), Problem: "no node"}, Source: &family.SourceStatus{}}, "16m40s old, and the head of its consensus client cannot be followed: no node"},
		"it is not for long":         {family.Status{HeadTime: fresh, Consensus: &family.ConsensusStatus{Forkchoice: int64(fresh), Problem: "no node"}, Source: &family.SourceStatus{}}, ""},
		"light client's, likewise":   {family.Status{HeadTime: old, Consensus: &family.ConsensusStatus{Forkchoice: int64(fresh), Problem: "no node"}, LightClient: &family.LightClientStatus{}, Source: &family.SourceStatus{}}, "the head of its light client cannot be followed: no node"},
		"client's head is far away":  {family.Status{HeadTime: fresh, Consensus: &family.ConsensusStatus{Forkchoice: int64(fresh), Behind: 100}}, "100 blocks behind"},
	} {
		err := notReady(&test.status, 0, now)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestDeadNode: a network whose only node dies says so once its newest block is old.
func TestDeadNode(t *testing.T) {
	const head = 20
	var genesis *types.Block
	var node *fakenode.Node
	s, key := served(t, func(c *config.Config) {
		genesis = ingesttest.Genesis(t).ToBlock()
		var err error
		if node, err = fakenode.New(fakenode.Options{ChainID: ingesttest.Genesis(t).Config.ChainID.Uint64(), Raw: true}, genesis); err != nil {
			t.Fatal(err)
		}
		blocks := ingesttest.Chain(t)[:head]
		node.Set(append([]*types.Block{genesis}, blocks...), 0, 0)
		entries := &evm.Entries{Source: family.Sources{node.URL()}}
		c.Networks = map[string]config.Network{"demo": config.Network{}.With(evm.Family{}, entries)}
	})
	operator := "http://" + s.operator.listener.Addr().String()
	readyz := func(status int, text string) {
		t.Helper()
		await.Until(t, fmt.Sprint(status, " ", text), func() bool {
			got, body := get(t, operator+"/readyz")
			return got == status && strings.Contains(body, text)
		})
	}
	url := "http://" + s.server.Addr().String() + "/v3/" + key
	await.Until(t, "the node's head", func() bool { return string(post(t, url, blockNumber, 200).Result) == `"0x14"` })
	readyz(200, "ready") // the head is old: the chain is idle
	node.Close()
	readyz(503, "no upstream is usable: http")
	status, err := s.status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if one := status.(Status).Networks[0]; one.Source.Reached || one.Source.Best != head || one.NotReady == "" {
		t.Errorf("the status is %+v %+v", one, one.Source)
	}
	_, metrics := get(t, operator+"/metrics")
	for _, want := range []string{`ashlar_ready{network="demo"} 0`, `ashlar_upstream_reached{network="demo"} 0`, `ashlar_store_writable{network="demo"} 1`, `ashlar_accounts_store_writable 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("not in the metrics: %s", want)
		}
	}
	if got := post(t, url, blockNumber, 200); string(got.Result) != `"0x14"` {
		t.Errorf("the head is %s", got.Result)
	}
}

// A catch-up has a pace, which is logged now and then, and an end.
func TestCatchUp(t *testing.T) {
	var c catchUp
	lines := 0
	for i := range uint64(20) {
		now := look{time.Unix(int64(5*i), 0), 1000 * i, 20_000 - 1000*i + 10}
		pace, logged := c.add(now)
		if logged {
			lines++
		}
		if i > 0 && (pace == nil || pace.Rate != 200 || pace.Remaining != int64(now.behind/200)+1) {
			t.Errorf("look %d: %+v", i, pace)
		}
	}
	if pace, logged := c.add(look{time.Unix(100, 0), 20_000, 0}); pace != nil || !logged || lines != 4 {
		t.Errorf("at the head: %+v, %v after %d lines", pace, logged, lines)
	}
	if _, logged := c.add(look{time.Unix(105, 0), 20_001, 0}); logged {
		t.Error("logged at the head")
	}
}
