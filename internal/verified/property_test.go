package verified

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ashlar/internal/conformance"
	"ashlar/internal/node"
	"ashlar/internal/vectors"
)

var (
	seed      = flag.Uint64("seed", 1, "seed of the questions and of the lies")
	rounds    = flag.Int("rounds", 1, "rounds of questions to nodes that lie, each with the next seed")
	questions = flag.Int("questions", 100, "random questions in a round, and as many of the conversations")
)

// liars is how many nodes lie beside an honest one. Each is set aside when it is found out, so
// this is the number of lies of a round that a check finds.
const liars = 24

// TestVerified replays the conversations of ethereum/execution-apis on a network that is
// proven over geth. Then it asks networks whose nodes lie at random in every method: no answer
// that is said to be verified differs, whatever the nodes say.
func TestVerified(t *testing.T) {
	folder := vectors.Path(t, "execution-apis")
	conversations, err := conformance.ReadConversations(folder)
	if err != nil {
		t.Fatal(err)
	}
	genesis := filepath.Join(folder, "genesis.json")
	geth := serveGeth(t, genesis, filepath.Join(folder, "chain.rlp"))
	head := headOf(t, geth)
	proven := network{check: "state", genesis: genesis, quorum: 1}
	headers := network{check: "headers", quorum: 1}
	_, honest := proven.over(geth.URL).serve(t, head)
	expectVerification(t, honest.Client)
	var asked [][]byte
	for _, c := range conversations {
		t.Run(c.Name, func(t *testing.T) {
			if why, postponed := conformance.Postponed(c.Name); postponed {
				t.Skip("later: " + why)
			}
			conformance.Replay(t, honest.Client, c)
		})
		for _, e := range c.Exchanges {
			if !strings.HasPrefix(c.Method, "eth_send") {
				asked = append(asked, e.Request)
			}
		}
	}
	_, honestHeaders := headers.over(geth.URL).serve(t, head)
	known := readChain(t, geth)
	for round := range *rounds {
		s := scene{seed: *seed + uint64(round), geth: geth, head: head, chain: known, asked: asked}
		s.name = fmt.Sprintf("seed %d, ", s.seed)
		t.Run(s.name+"state", func(t *testing.T) { s.withHonestNode(t, proven, honest) })
		t.Run(s.name+"headers", func(t *testing.T) { s.withHonestNode(t, headers, honestHeaders) })
		t.Run(s.name+"state, all lie alike", func(t *testing.T) { s.withoutHonestNode(t, proven, honest) })
		t.Run(s.name+"headers, all lie alike", func(t *testing.T) { s.withoutHonestNode(t, headers, honestHeaders) })
	}
}

// scene is a round of questions about a chain.
type scene struct {
	name  string
	seed  uint64
	geth  *node.Client
	head  uint64
	chain *chain
	asked [][]byte // besides random questions
}

// withHonestNode asks a network whose nodes lie, each in its own way, but for the last one. That
// is asked only when no other can answer.
func (s *scene) withHonestNode(t *testing.T, n network, honest *endpoint) {
	l := &liar{to: s.geth, chain: s.chain, seed: s.seed, share: 25}
	urls := newLiar(t, l, liars)
	p, lied := n.over(urls...).withBackup(s.geth.URL).serve(t, s.head)
	answered, refusals := s.compare(t, honest, lied, math.MaxInt)
	sum, kinds := l.lies()
	t.Logf("%d answers are equal, %d were refused; %d lies: %v", answered, refusals, sum, kinds)
	if answered < 9*(answered+refusals)/10 {
		t.Errorf("%d answers are equal and %d were refused, though one node is honest", answered, refusals)
	}
	found := 0
	for name, faults := range lied.faults(t) {
		if name == s.geth.URL && faults > 0 {
			t.Errorf("the honest node is said to have sent %d false answers", faults)
		}
		found += faults
	}
	if found < liars/2 {
		t.Errorf("the metrics name %d false answers, want at least %d", found, liars/2)
	}
	if log := p.Output(); !strings.Contains(log, "the node sent a false answer: it is set aside") || !strings.Contains(log, strings.TrimSuffix(urls[0], "/0")) {
		t.Errorf("the log names no node that lied:\n%s", log)
	}
	if size, err := p.ResidentBytes(); err != nil || size > 1<<30 {
		t.Errorf("%d bytes of memory, %v", size, err)
	}
}

// withoutHonestNode asks networks whose nodes tell the same lies. Since all are set aside soon,
// each round asks few questions.
func (s *scene) withoutHonestNode(t *testing.T, n network, honest *endpoint) {
	const (
		worlds       = 4
		mostRefusals = 1 // then all nodes are set aside soon, and a question waits for one
	)
	n.quorum = 2
	told, equal := 0, 0
	for i := range worlds {
		l := &liar{to: s.geth, chain: s.chain, seed: s.seed*worlds + uint64(i), share: 4, agree: true}
		p, lied := n.over(newLiar(t, l, 3)...).serve(t, s.head)
		l.begun.Store(true)
		some := *s
		some.seed, some.asked = l.seed, nil
		answered, refusals := some.compare(t, honest, lied, mostRefusals)
		sum, kinds := l.lies()
		t.Logf("%d answers are equal, %d were refused; %d lies: %v", answered, refusals, sum, kinds)
		told, equal = told+sum, equal+answered
		p.Kill()
	}
	if told == 0 || equal == 0 {
		t.Errorf("%d lies were told, %d answers are equal", told, equal)
	}
}

// compare asks both networks until many answers were refused, and returns how many are equal and
// how many were refused.
// An answer that is said to be verified must be the honest network's. One that is not, although
// the honest network's is, must be an error, null, or equal: a block may not be linked to the head
// yet.
func (s *scene) compare(t *testing.T, honest, lied *endpoint, most int) (equal, refusals int) {
	t.Helper()
	r := rand.New(rand.NewPCG(s.seed, 25))
	var asked [][]byte
	for i, at := range r.Perm(max(*questions, len(s.asked))) {
		if i == *questions {
			break
		}
		asked = append(asked, s.chain.question(r))
		if at < len(s.asked) {
			asked = append(asked, s.asked[at])
		}
	}
	for i := range asked {
		if refusals == most {
			break
		}
		want, wanted := honest.post(t, asked[i])
		got, verified := lied.post(t, asked[i])
		switch {
		case verified != "none" && (!bytes.Equal(want, got) || verified != wanted):
			t.Errorf("%s%.600s\ngot  %s: %.600s\nwant %s: %.600s", s.name, asked[i], verified, got, wanted, want)
		case (verified == wanted || verified == "none") && bytes.Equal(want, got):
			equal++
		case verified == "none" && wanted != "none" && !refused(got):
			t.Errorf("%s%.600s\ngot  %.600s\nwant %s: %.600s", s.name, asked[i], got, wanted, want)
		case wanted != "none":
			refusals++
		}
	}
	return equal, refusals
}

// refused reports whether an answer is null, or an error other than that of code that has reverted.
func refused(answer []byte) bool {
	var a node.Answer
	if json.Unmarshal(answer, &a) != nil {
		return false
	}
	return a.Error != nil && a.Error.Code != 3 || a.Error == nil && string(a.Result) == "null"
}

// post sends a request, and returns the answer and how it is said to be verified.
func (e *endpoint) post(t *testing.T, request []byte) (answer []byte, verified string) {
	t.Helper()
	response, err := http.Post(e.URL, "application/json", bytes.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	return text.Bytes(), response.Header.Get("Ashlar-Verified")
}

var faultsMetric = regexp.MustCompile(`(?m)^ashlar_upstream_faults_total\{fault="invalid",network="test",upstream="([^"]+)"\} (\d+)`)

// faults returns how many false answers the metrics say that each node has sent.
func (e *endpoint) faults(t *testing.T) map[string]int {
	t.Helper()
	response, err := http.Get("http://" + e.operator + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]int)
	for _, m := range faultsMetric.FindAllStringSubmatch(text.String(), -1) {
		var count int
		if _, err := fmt.Sscan(m[2], &count); err != nil {
			t.Fatal(err)
		}
		all[m[1]] = count
	}
	if len(all) == 0 {
		t.Fatalf("no metrics of nodes:\n%.2000s", text.String())
	}
	return all
}
