package clients

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ashlar/internal/node"
	"ashlar/starknet/source/synthetic"
)

// starknetLibraries returns the libraries for Starknet networks.
func starknetLibraries() []library {
	return []library{
		{name: "starknet.js", command: []string{"node"}, script: "starknet.mjs"},
		{name: "starknet.py", command: []string{filepath.Join("starknet-venv", "bin", "python")}, script: "starknetclient.py"},
	}
}

// event is an event as printed by the scripts.
type event struct {
	BlockHash        string   `json:"block_hash"`
	BlockNumber      uint64   `json:"block_number"`
	TransactionHash  string   `json:"transaction_hash"`
	TransactionIndex uint64   `json:"transaction_index"`
	EventIndex       uint64   `json:"event_index"`
	From             string   `json:"from_address"`
	Keys             []string `json:"keys"`
	Data             []string `json:"data"`
}

// Every library connects to a Starknet network and lists its events page by page. They equal the
// service's answers to plain requests without pages.
func TestLibrariesListEvents(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serve(t)
	url := strings.Replace(s.url, "/v3/", "/demo-starknet/v3/", 1)
	const first, last, chunk = 3, 20, 7
	key := synthetic.Selector(0).String()
	var whole struct {
		Events []event
		Token  *string `json:"continuation_token"`
	}
	filter := map[string]any{
		"from_block": map[string]any{"block_number": first}, "to_block": map[string]any{"block_number": last},
		"keys": [][]string{{key}}, "chunk_size": 1024,
	}
	if err := node.NewClient(url).Call(t.Context(), &whole, "starknet_getEvents", filter); err != nil {
		t.Fatal(err)
	}
	want := whole.Events
	if whole.Token != nil || len(want) < 10*chunk {
		t.Fatalf("%d events with the token %v: too many or too few for this test", len(want), whole.Token)
	}
	for _, l := range starknetLibraries() {
		t.Run(l.name, func(t *testing.T) {
			var got struct {
				Version, Chain, Block string
				Follows               bool
				Receipts              []uint64 // the blocks of the first events' transactions
				Events                []event
				Pages, WrongKey       int
			}
			run(t, dir, l, &got, url, fmt.Sprint(first), fmt.Sprint(last), key, fmt.Sprint(chunk))
			if pages := (len(want) + chunk - 1) / chunk; !reflect.DeepEqual(got.Events, want) || got.Pages != pages {
				t.Errorf("%d events on %d pages, or other events: want %d on %d", len(got.Events), got.Pages, len(want), pages)
			}
			got.Events = nil
			if got.Version != "0.9.0" || got.Chain != "0x534e5f44454d4f" || !got.Follows || got.WrongKey != 401 {
				t.Errorf("connected to %+v", got)
			}
			if blocks := []uint64{want[0].BlockNumber, want[1].BlockNumber, want[2].BlockNumber}; !reflect.DeepEqual(got.Receipts, blocks) {
				t.Errorf("receipts are of the blocks %v, want %v", got.Receipts, blocks)
			}
		})
	}
}

// Each version of starknet.py reads blocks, events and receipts under the path of its version
// of the specification, and warns of no other version.
func TestVersionsOfStarknetPy(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	s := serve(t)
	url := strings.Replace(s.url, "/v3/", "/demo-starknet/v3/", 1)
	const chunk = 7
	for release, path := range map[string]struct{ path, version string }{
		"0.27.0": {"v0_8", "0.8.1"}, "0.28.1": {"v0_9", "0.9.0"}, "0.29.0": {"v0_10", "0.10.0"},
	} {
		t.Run(release, func(t *testing.T) {
			l := library{name: "starknet.py " + release, command: []string{filepath.Join("starknet-venv", "bin", "python")}, script: "starknetversion.py", packages: "starknet-py-" + release}
			var got struct {
				Expected, Version string
				Events, Block     int
				Receipt, Follows  bool
			}
			run(t, dir, l, &got, url+"/rpc/"+path.path, synthetic.Selector(0).String(), fmt.Sprint(chunk))
			if got.Expected != path.version || got.Version != path.version || got.Events != chunk || got.Block != 1 || !got.Receipt || !got.Follows {
				t.Errorf("read %+v", got)
			}
		})
	}
	if err := node.NewClient(url+"/rpc/v0_7").Call(t.Context(), new(string), "starknet_specVersion"); err == nil || !strings.Contains(err.Error(), "no such version") {
		t.Errorf("an unknown version: %v", err)
	}
}

// The requests of the indexer Torii succeed: the version that it requires, the head, and then batches of
// pages up to that block's hash, each with the tokens of the previous one.
func TestToriisCalls(t *testing.T) {
	t.Parallel()
	s := serve(t)
	url := strings.Replace(s.url, "/v3/", "/demo-starknet/v3/", 1)
	client := node.NewClient(url)
	var version string
	if err := client.Call(t.Context(), &version, "starknet_specVersion"); err != nil || !strings.HasPrefix(version, "0.9") {
		t.Fatalf("version %s, %v", version, err)
	}
	var head struct {
		Hash   string `json:"block_hash"`
		Number uint64 `json:"block_number"`
	}
	if err := client.Call(t.Context(), &head, "starknet_blockHashAndNumber"); err != nil {
		t.Fatal(err)
	}
	filters := make(map[int]map[string]any) // by request id; filters that have more pages
	for i := range 3 {
		filters[i] = map[string]any{
			"from_block": map[string]any{"block_number": 0}, "to_block": map[string]any{"block_hash": head.Hash},
			"address": synthetic.Contract(i).String(), "keys": [][]string{}, "chunk_size": 100,
		}
	}
	counts := make(map[int]int)
	for len(filters) > 0 {
		for id, page := range batch(t, url, filters) {
			counts[id] += len(page.Events)
			for _, event := range page.Events {
				if event.From != filters[id]["address"] || event.BlockNumber > head.Number {
					t.Errorf("%v is answered with %+v", filters[id], event)
				}
			}
			filters[id]["continuation_token"] = page.Token
			if page.Token == "" {
				delete(filters, id)
			}
		}
	}
	// Each of these contracts emits half as many events as the previous one.
	if counts[0] <= counts[1] || counts[1] <= counts[2] || counts[2] < 50 {
		t.Errorf("events by contract: %v", counts)
	}
}

type eventPage struct {
	Events []event
	Token  string `json:"continuation_token"`
}

// batch requests a page of each filter in one batch.
func batch(t *testing.T, url string, filters map[int]map[string]any) map[int]eventPage {
	t.Helper()
	var calls []any
	for id, filter := range filters {
		calls = append(calls, map[string]any{"jsonrpc": "2.0", "id": id, "method": "starknet_getEvents", "params": map[string]any{"filter": filter}})
	}
	body, err := json.Marshal(calls)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var answers []struct {
		ID     int
		Result *eventPage
		Error  any
	}
	if err := json.NewDecoder(response.Body).Decode(&answers); err != nil {
		t.Fatal(err)
	}
	pages := make(map[int]eventPage)
	for _, answer := range answers {
		if answer.Result == nil {
			t.Fatalf("call %d: %v", answer.ID, answer.Error)
		}
		pages[answer.ID] = *answer.Result
	}
	if len(pages) != len(filters) {
		t.Fatalf("%d answers to %d calls", len(pages), len(filters))
	}
	return pages
}
