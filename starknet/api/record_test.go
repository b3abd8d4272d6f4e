package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"ashlar/starknet"
)

// rawEvents asks a method for all events of a chain of at most 1024.
func (n *network) rawEvents(t *testing.T, method string) (all []map[string]json.RawMessage) {
	t.Helper()
	out, err := n.ask(t, method, `[{"chunk_size":1024}]`)
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Events []map[string]json.RawMessage
		Token  string `json:"continuation_token"`
	}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Token != "" {
		t.Fatalf("%s, %v", out, err)
	}
	return answer.Events
}

// TestMembersOfEvents: rollup_getEvents answers with the members that its
// specification has, starknet_getEvents with the indexes as well, whatever rows the
// events of a transaction lie in.
func TestMembersOfEvents(t *testing.T) {
	blocks := next(made(4, 0), 20)
	busy := blocks[11]
	for len(busy.Transactions) < 3 {
		busy.Transactions = append(busy.Transactions, starknet.Transaction{Hash: starknet.FeltOf(uint64(len(busy.Transactions) + 1))})
	}
	for i := range 100 { // more than a row holds, and transactions without any in between
		receipt := &busy.Transactions[i/80*2].Receipt
		receipt.Events = append(receipt.Events, starknet.Event{Data: []starknet.Felt{starknet.FeltOf(uint64(i))}})
	}
	n := newNetwork(t, blocks...)
	plain, indexed := n.rawEvents(t, "rollup_getEvents"), n.rawEvents(t, "starknet_getEvents")
	if len(plain) != len(indexed) || len(plain) < 200 {
		t.Fatalf("%d and %d events", len(plain), len(indexed))
	}
	at := 0
	for _, block := range blocks {
		for i := range block.Transactions {
			for j := range block.Transactions[i].Receipt.Events {
				got := indexed[at]
				if string(got["transaction_index"]) != fmt.Sprint(i) || string(got["event_index"]) != fmt.Sprint(j) {
					t.Fatalf("block %d: event %d of transaction %d is told as %s", block.Number, j, i, got)
				}
				delete(got, "transaction_index")
				delete(got, "event_index")
				if names := strings.Join(slices.Sorted(maps.Keys(plain[at])), " "); names != "block_hash block_number data from_address keys transaction_hash" {
					t.Fatalf("an event has the members %s", names)
				}
				if fmt.Sprint(got) != fmt.Sprint(plain[at]) {
					t.Fatalf("%s and %s", got, plain[at])
				}
				at++
			}
		}
	}
	if at != len(plain) {
		t.Errorf("%d events, want %d", len(plain), at)
	}
}

// TestPendingBlock: it is the empty one above the latest, in the words of the
// versions on both sides of 0.9.
func TestPendingBlock(t *testing.T) {
	blocks := next(made(4, 5), 3)
	n := newNetwork(t, blocks...)
	for _, tag := range []string{"pending", "pre_confirmed"} {
		out, err := n.ask(t, "starknet_getBlockWithTxHashes", fmt.Sprintf(`{"block_id":%q}`, tag))
		var got struct {
			Parent       string    `json:"parent_hash"`
			Number       uint64    `json:"block_number"`
			Transactions *[]string `json:"transactions"`
			Hash         *string   `json:"block_hash"`
		}
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if err != nil || got.Parent != blocks[2].Hash.String() || got.Number != 8 || got.Transactions == nil || len(*got.Transactions) > 0 || got.Hash != nil {
			t.Errorf("%s: %s, %v", tag, out, err)
		}
	}
}
