package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/app/config"
	"ashlar/family"
	"ashlar/internal/await"
	"ashlar/internal/vectors"
	"ashlar/starknet"
	starknetnetwork "ashlar/starknet/network"
	"ashlar/starknet/source/node/nodetest"
	"ashlar/starknet/source/synthetic"

	"github.com/coder/websocket"
)

// followed is a service whose configuration names one network, of a node.
type followed struct {
	t    *testing.T
	s    *Service
	stop func()
	url  string
}

// follow writes the configuration of a network and runs what it says.
func follow(t *testing.T, data, entries string) followed {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ashlar.yaml")
	text := fmt.Sprintf("data: %s\nlisten: 127.0.0.1:0\nnetworks:\n  mine:\n%s", data, entries)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, Families())
	if err != nil {
		t.Fatal(err)
	}
	s, key, stop := running(t, c)
	return followed{t, s, stop, "http://" + s.server.Addr().String() + "/mine/v3/" + key}
}

// await waits until the network is at a block, and returns its status then.
func (f followed) await(head starknet.Felt) family.Status {
	f.t.Helper()
	return f.awaitStatus("the head "+head.String(), func(s family.Status) bool { return s.HeadHash == head.String() })
}

// awaitStatus waits until the status of the network is as it should be, and returns it.
func (f followed) awaitStatus(what string, is func(family.Status) bool) (status family.Status) {
	f.t.Helper()
	await.Until(f.t, what, func() bool {
		var err error
		if status, err = f.s.networks[0].Status(f.t.Context()); err != nil {
			f.t.Fatal(err)
		}
		return is(status)
	})
	return status
}

// page asks for one page of all events.
func (f followed) page(size int, token string) (blocks []uint64, next string, code int) {
	f.t.Helper()
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"rollup_getEvents","params":{"filter":{"to_block":{"block_number":4000000},"chunk_size":%d,"continuation_token":%q}}}`, size, token)
	a := post(f.t, f.url, body, http.StatusOK)
	var failure struct{ Code int }
	var result struct {
		Events []struct {
			Number uint64 `json:"block_number"`
		}
		Token string `json:"continuation_token"`
	}
	for _, part := range []struct {
		text json.RawMessage
		into any
	}{{a.Error, &failure}, {a.Result, &result}} {
		if len(part.text) > 0 {
			if err := json.Unmarshal(part.text, part.into); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	for _, event := range result.Events {
		blocks = append(blocks, event.Number)
	}
	return blocks, result.Token, failure.Code
}

// unruled are further blocks of a chain, of a version for whose hash there is no rule.
func unruled(chain *synthetic.Chain, n int) (blocks []*starknet.Block) {
	for range n {
		block := chain.Next()
		block.Version = "99.0"
		blocks = append(blocks, block)
	}
	return blocks
}

func eventCount(blocks []*starknet.Block) (n int) {
	for _, block := range blocks {
		n += block.EventCount()
	}
	return n
}

// TestStarknetFollowsItsNode: a network that only the configuration knows of begins
// with the block that it names, follows its node over a reorganization, and goes on
// after a restart where it was.
func TestStarknetFollowsItsNode(t *testing.T) {
	made := synthetic.New(synthetic.Default())
	past := unruled(made, 120)
	fork := made.Fork(7)
	blocks := append(past[:120:120], unruled(made, 20)...)
	node := nodetest.New(t, 8, blocks)
	node.ChainID = starknet.FeltOfText("SN_MINE")
	data := t.TempDir()
	entries := fmt.Sprintf("    family: starknet\n    chain: SN_MINE\n    first: 40\n    source: %s/key\n", node.URL)

	f := follow(t, data, entries)
	status := f.await(blocks[139].Hash)
	if status.First != 40 || status.Head != 139 || status.Settled > 139-64 || status.Settled < 138-64 || status.Chain != "SN_MINE" {
		t.Errorf("holds %+v", status)
	}
	if source := status.Source; source == nil || source.Problem != "" || source.Behind > 0 || len(source.Upstreams) != 1 || source.Upstreams[0].Head != 139 || strings.Contains(source.Upstreams[0].Name, "key") {
		t.Errorf("the node stands as %+v", source)
	}
	before := eventCount(blocks[40:])
	all, below, _ := f.page(eventCount(blocks[40:50]), "")
	if len(all) == 0 || all[0] < 40 || below == "" {
		t.Errorf("the first page is of %v", all)
	}
	_, above, _ := f.page(min(1024, before-5), "")
	for taken := min(1024, before-5); taken < before-5; taken += 1024 { // to the last events
		_, above, _ = f.page(min(1024, before-5-taken), above)
	}

	branch := append(past[:120:120], unruled(fork, 30)...)
	node.Set(branch)
	f.await(branch[149].Hash)
	if _, _, code := f.page(100, above); code != 33 {
		t.Errorf("a token that points into a block which was taken back: code %d, want 33", code)
	}
	after := eventCount(blocks[40:50])
	for token := below; token != ""; {
		var page []uint64
		var code int
		if page, token, code = f.page(1000, token); code != 0 {
			t.Fatalf("a token that points into a block which is still there: code %d", code)
		}
		after += len(page)
	}
	if want := eventCount(append(past[40:120:120], branch[120:140]...)); after != want {
		t.Errorf("%d events of the branch up to the block that was the last, want %d", after, want)
	}
	f.stop()

	grown := append(branch, unruled(fork, 5)...)
	node.Set(grown)
	asked := node.Questions("starknet_getBlockWithReceipts")
	f = follow(t, data, entries)
	defer f.stop()
	if status := f.await(grown[154].Hash); status.First != 40 {
		t.Errorf("holds %+v", status)
	}
	if more := node.Questions("starknet_getBlockWithReceipts") - asked; more != 5 {
		t.Errorf("%d blocks were asked for after the restart, want 5", more)
	}
	c := f.s.config
	changed := config.Network{Hosts: []string{"mine.example.org"}}.With(starknetnetwork.Family{}, &starknetnetwork.Entries{First: 50})
	c.Networks = map[string]config.Network{"mine": changed}
	if err := f.s.Reload(c); err != nil {
		t.Errorf("reload: %v", err)
	}
}

// TestStarknetOfAnotherChain: a node of another chain is not followed, and said so;
// what the network holds is served.
func TestStarknetOfAnotherChain(t *testing.T) {
	blocks := unruled(synthetic.New(synthetic.Default()), 3)
	node := nodetest.New(t, 10, blocks)
	node.ChainID = starknet.FeltOfText("SN_OTHER")
	f := follow(t, t.TempDir(), fmt.Sprintf("    family: starknet\n    chain: SN_MINE\n    source: %s/key\n", node.URL))
	defer f.stop()
	f.awaitStatus("a node of another chain that is not used", func(s family.Status) bool {
		return strings.Contains(s.Source.Problem, "another chain") && !s.Source.Upstreams[0].Used
	})
	if _, _, code := f.page(1, ""); code != 32 {
		t.Errorf("a network without blocks answers with code %d, want 32", code)
	}
}

// TestRealAnswerIsImported: a block that a real node told is taken in by way of the
// network, its hash confirmed, and its events are answered with.
func TestRealAnswerIsImported(t *testing.T) {
	text, err := os.ReadFile(vectors.Path(t, "starknet", "rpc", "starknet.go_blockWithReceipts_sepolia3100000.json"))
	if err != nil {
		t.Fatal(err)
	}
	var kept struct{ Result json.RawMessage }
	var block struct {
		Hash   string `json:"block_hash"`
		Number uint64 `json:"block_number"`
	}
	if err := json.Unmarshal(text, &kept); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(kept.Result, &block); err != nil {
		t.Fatal(err)
	}
	node := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct{ Method string }
		if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
			t.Error(err)
		}
		result := map[string]string{
			"starknet_chainId":              fmt.Sprintf("%q", starknet.FeltOfText("SN_SEPOLIA")),
			"starknet_blockHashAndNumber":   fmt.Sprintf(`{"block_hash":%q,"block_number":%d}`, block.Hash, block.Number),
			"starknet_getBlockWithReceipts": string(kept.Result),
		}[q.Method]
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":%s}`, result)
	}))
	defer node.Close()
	f := follow(t, t.TempDir(), fmt.Sprintf("    family: starknet\n    chain: SN_SEPOLIA\n    first: %d\n    source: %s\n", block.Number, node.URL))
	defer f.stop()
	hash, err := starknet.ParseFelt([]byte(block.Hash))
	if err != nil {
		t.Fatal(err)
	}
	if status := f.await(hash); status.First != 3_100_000 || status.Head != 3_100_000 {
		t.Errorf("holds %+v", status)
	}
	if events, token, _ := f.page(10, ""); len(events) != 3 || token != "" {
		t.Errorf("%d events, token %q, want 3 events", len(events), token)
	}
}

// TestStarknetQuorum: of three nodes two must agree. One with another branch is named, and
// when two of them differ the head stays and the reason is known.
func TestStarknetQuorum(t *testing.T) {
	made := synthetic.New(synthetic.Default())
	past := unruled(made, 20)
	fork := made.Fork(7)
	blocks, branch := append(past[:20:20], unruled(made, 20)...), append(past[:20:20], unruled(fork, 25)...)
	nodes, urls := make([]*nodetest.Node, 3), make([]string, 3)
	for i := range nodes {
		nodes[i] = nodetest.New(t, 8+i, blocks)
		nodes[i].ChainID = starknet.FeltOfText("SN_MINE")
		urls[i] = nodes[i].URL
	}
	nodes[0].Set(branch)
	f := follow(t, t.TempDir(), fmt.Sprintf("    family: starknet\n    chain: SN_MINE\n    source: [%s]\n    quorum: 2\n", strings.Join(urls, ", ")))
	defer f.stop()
	source := f.await(blocks[39].Hash).Source
	if a := source.Agreement; a == nil || a.Quorum != 2 || a.Nodes != 2 || a.Since != 0 || source.Behind != 0 || !source.Reached {
		t.Errorf("the nodes stand as %+v, %+v", source, source.Agreement)
	}
	if u := source.Upstreams; len(u) != 3 || u[0].Differs == "" || u[0].Used || u[1].Differs != "" || !u[1].Used {
		t.Errorf("the nodes stand as %+v", u)
	}
	nodes[1].Set(blocks[:10])
	nodes[2].Set(branch)
	f.await(branch[44].Hash)
	nodes[1].Set(nil)
	nodes[2].Set(nil)
	eventually(t, func() bool {
		status, err := f.s.networks[0].Status(t.Context())
		return err == nil && status.Source.Agreement.Since != 0 && status.HeadHash == branch[44].Hash.String()
	})
}

// TestStarknetVersions: the path of a version works below the name of the network and at its
// own host, over HTTP and WebSockets; and the node says what is accepted on layer 1.
func TestStarknetVersions(t *testing.T) {
	blocks := unruled(synthetic.New(synthetic.Default()), 12)
	node := nodetest.New(t, 10, blocks)
	node.ChainID = starknet.FeltOfText("SN_MINE")
	node.AcceptOnL1(7)
	f := follow(t, t.TempDir(), fmt.Sprintf("    family: starknet\n    hosts: [sn.test]\n    chain: SN_MINE\n    source: %s\n", node.URL))
	defer f.stop()
	f.await(blocks[11].Hash)
	address := f.s.server.Addr().String()
	key := f.url[strings.LastIndex(f.url, "/")+1:]
	dial := &websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, address)
	}}}}
	ask := func(socket bool, base, version, method, params string) string {
		t.Helper()
		request := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, method, params)
		if !socket {
			response, err := dial.HTTPClient.Post("http://"+base+"/v3/"+key+"/rpc/"+version, "application/json", strings.NewReader(request))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(response.Body)
			if err := errors.Join(err, response.Body.Close()); err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
		c, _, err := websocket.Dial(t.Context(), "ws://"+base+"/ws/v3/"+key+"/rpc/"+version, dial)
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		if err := c.Write(t.Context(), websocket.MessageText, []byte(request)); err != nil {
			t.Fatal(err)
		}
		_, text, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for version, want := range map[string]string{"v0_8": `"0.8.1"`, "v0_9": `"0.9.0"`, "v0_10": `"0.10.0"`} {
		for _, base := range []string{address, address + "/mine", "sn.test", "sn.test/mine"} {
			for _, socket := range []bool{false, true} {
				if got := ask(socket, base, version, "starknet_specVersion", "[]"); !strings.Contains(got, `"result":`+want) {
					t.Errorf("%s at %s, WebSocket %t: %s", version, base, socket, got)
				}
			}
		}
	}
	eventually(t, func() bool {
		got := ask(true, "sn.test", "v0_9", "starknet_getBlockWithTxHashes", `["l1_accepted"]`)
		return strings.Contains(got, `"block_number":7,`) && strings.Contains(got, `"status":"ACCEPTED_ON_L1"`)
	})
}
