package clients

import (
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"ashlar/internal/node"
	"ashlar/source/rollup/madeup"
)

// rollupLibraries are those for rollup networks.
func rollupLibraries() []library {
	return []library{
		{"starknet.js", []string{"node"}, "starknet.mjs"},
		{"starknet.py", []string{filepath.Join("starknet-venv", "bin", "python")}, "starknetclient.py"},
	}
}

// event is an event as the libraries tell it.
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

// Every library connects to a rollup network and lists its events page by page:
// those that the service answers without a library, and without pages.
func TestLibrariesListEvents(t *testing.T) {
	dir := folder(t)
	s := serve(t)
	url := strings.Replace(s.url, "/v3/", "/demo-rollup/v3/", 1)
	const first, last, chunk = 3, 20, 7
	key := madeup.Selector(0).String()
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
	for _, l := range rollupLibraries() {
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
