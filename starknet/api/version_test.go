package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ashlar/chain"
	"ashlar/starknet/query"
	"ashlar/starknet/source/synthetic"
)

// in returns the network with the methods of a version.
func (n *network) in(t *testing.T, version string) *network {
	t.Helper()
	v, ok := Versions()[version]
	if !ok {
		t.Fatalf("no version %s", version)
	}
	other := *n
	other.methods = handlersOf(t, New(query.NewChain(n.archive, noTip), v))
	return &other
}

// membersOf returns the sorted names of an object's members.
func membersOf(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return strings.Join(slices.Sorted(maps.Keys(object)), " ")
}

// Answers of each version have the members of that version.
func TestVersions(t *testing.T) {
	n := newNetwork(t, next(made(7, 0), 20)...)
	const (
		common      = "l1_da_mode l1_data_gas_price l1_gas_price l2_gas_price"
		block       = "block_hash block_number " + common + " new_root parent_hash sequencer_address starknet_version status timestamp transactions"
		blockOf010  = "block_hash block_number event_commitment event_count " + common + " new_root parent_hash receipt_commitment sequencer_address starknet_version state_diff_commitment state_diff_length status timestamp transaction_commitment transaction_count transactions"
		event       = "block_hash block_number data from_address keys transaction_hash"
		eventOf010  = "block_hash block_number data event_index from_address keys transaction_hash transaction_index"
		pendingOf08 = common + " parent_hash sequencer_address starknet_version timestamp transactions"
		pending     = "block_number " + common + " sequencer_address starknet_version timestamp transactions"
	)
	for version, want := range map[string]struct{ spec, block, pending, event string }{
		"v0_8":  {`"0.8.1"`, block, pendingOf08, event},
		"v0_9":  {`"0.9.0"`, block, pending, event},
		"v0_10": {`"0.10.0"`, blockOf010, pending, eventOf010},
	} {
		in := n.in(t, version)
		ask := func(method, params string) json.RawMessage {
			answer, err := in.ask(t, method, params)
			if err != nil {
				t.Fatalf("%s %s: %v", version, method, err)
			}
			return answer
		}
		if got := string(ask("starknet_specVersion", "[]")); got != want.spec {
			t.Errorf("%s: version %s, want %s", version, got, want.spec)
		}
		if got := membersOf(t, ask("starknet_getBlockWithTxHashes", `[{"block_number":3}]`)); got != want.block {
			t.Errorf("%s: a block has\n%s, want\n%s", version, got, want.block)
		}
		for _, tag := range []string{"pending", "pre_confirmed"} {
			if got := membersOf(t, ask("starknet_getBlockWithTxHashes", `["`+tag+`"]`)); got != want.pending {
				t.Errorf("%s: the pending block has\n%s, want\n%s", version, got, want.pending)
			}
		}
		var page struct{ Events []json.RawMessage }
		if err := json.Unmarshal(ask("starknet_getEvents", `[{"chunk_size":1}]`), &page); err != nil || len(page.Events) != 1 {
			t.Fatalf("%s: %v, %d events", version, err, len(page.Events))
		}
		if got := membersOf(t, page.Events[0]); got != want.event {
			t.Errorf("%s: an event has\n%s, want\n%s", version, got, want.event)
		}
	}
}

// Since 0.10, a filter may list addresses. Its pages are the events of any of them, in order.
func TestAddressLists(t *testing.T) {
	blocks := next(made(8, 0), 30)
	n := newNetwork(t, blocks...).in(t, "v0_10")
	address := func(i int) string { return synthetic.Contract(i).String() }
	selectors := []string{synthetic.Selector(0).String(), synthetic.Selector(1).String()}
	var many []string // so many that contracts and keys are looked up on their own
	for i := range 600 {
		many = append(many, synthetic.Contract(i).String())
	}
	for _, listed := range [][]string{{address(1)}, {address(3), address(0), address(3)}, {}, {"0x1234"}, many} {
		for _, keys := range [][]string{nil, selectors} {
			var want []record
			for _, block := range blocks {
				for _, r := range recordsOf(block) {
					if (len(listed) == 0 || slices.Contains(listed, r.From)) && (keys == nil || len(r.Keys) > 0 && slices.Contains(keys, r.Keys[0])) {
						want = append(want, r)
					}
				}
			}
			filter, err := json.Marshal(map[string]any{"address": listed, "keys": [][]string{keys}, "chunk_size": 50})
			if err != nil {
				t.Fatal(err)
			}
			if got := n.listed(t, string(filter)); len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
				t.Errorf("%.60s with keys %v: %d events, want %d", listed, keys, len(got), len(want))
			}
		}
	}
	if _, err := n.in(t, "v0_9").ask(t, "starknet_getEvents", `[{"address":["0x1"],"chunk_size":1}]`); err == nil || !strings.Contains(err.Error(), "address: expected a string") {
		t.Errorf("a list in 0.9: %v", err)
	}
}

// listed returns the events of all pages of starknet_getEvents.
func (n *network) listed(t *testing.T, filter string) (all []record) {
	t.Helper()
	for asked := filter; ; {
		answer, err := n.ask(t, "starknet_getEvents", "["+asked+"]")
		if err != nil {
			t.Fatal(err)
		}
		var p page
		if err := json.Unmarshal(answer, &p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Events...)
		if p.Token == nil {
			return all
		}
		asked = strings.TrimSuffix(filter, "}") + `,"continuation_token":"` + *p.Token + `"}`
	}
}

// TestFits: a block fits unless another one with its number is here.
func TestFits(t *testing.T) {
	blocks := next(made(7, 5), 3)
	n := newNetwork(t, blocks...)
	c := query.NewChain(n.archive, noTip)
	ref := blocks[1].Ref()
	for block, fits := range map[chain.Ref]bool{
		ref: true, {Number: ref.Number, Hash: blocks[0].Ref().Hash}: false,
		{Number: blocks[0].Number, Hash: ref.Hash}: false, {Number: blocks[2].Number, Hash: ref.Hash}: false,
		{Number: blocks[0].Number - 1}: true, {Number: blocks[2].Number + 1}: true, // not here
	} {
		if err := c.Fits(t.Context(), block); (err == nil) != fits {
			t.Errorf("block %v: %v", block, err)
		}
	}
	if err := query.NewChain(newNetwork(t).archive, noTip).Fits(t.Context(), ref); err != nil {
		t.Errorf("a chain without blocks: %v", err)
	}
}

// TestL1Accepted: since 0.9, the latest block that is accepted on layer 1 has a tag. Blocks up to
// it, and their receipts, say so.
func TestL1Accepted(t *testing.T) {
	blocks := next(made(7, 0), 20)
	n := newNetwork(t, blocks...)
	first, last := blocks[0].Number, blocks[19].Number
	type block struct {
		Number uint64 `json:"block_number"`
		Status string
	}
	for version, v := range Versions() {
		wrong, unknown := -32602, -32602
		if version != "v0_8" {
			wrong, unknown = 0, 24
		}
		chain, in := query.NewChain(n.archive, noTip), *n
		in.methods = handlersOf(t, New(chain, v))
		for _, method := range []string{"starknet_getBlockWithTxHashes", "starknet_getEvents"} {
			params := map[string]string{"starknet_getBlockWithTxHashes": `["l1_accepted"]`, "starknet_getEvents": `[{"to_block":"l1_accepted","chunk_size":1000}]`}[method]
			if _, err := in.ask(t, method, params); code(err) != unknown {
				t.Errorf("%s %s without such a block: %v, want code %d", version, method, err, unknown)
			}
		}
		for _, c := range []struct{ set, want uint64 }{{first + 4, first + 4}, {first + 2, first + 4}, {first + 5, first + 5}, {last + 100, last}} {
			chain.SetL1Accepted(c.set)
			out, err := in.ask(t, "starknet_getBlockWithTxHashes", `["l1_accepted"]`)
			if code(err) != wrong {
				t.Errorf("%s: %v, want code %d", version, err, wrong)
			}
			if err != nil {
				continue
			}
			var got block
			if err := json.Unmarshal(out, &got); err != nil || got != (block{c.want, "ACCEPTED_ON_L1"}) {
				t.Errorf("%s: %+v, %v, want block %d", version, got, err, c.want)
			}
		}
	}
	chain := query.NewChain(n.archive, noTip)
	chain.SetL1Accepted(first + 4)
	n.methods = handlersOf(t, New(chain, Usual()))
	events := 0
	for i, b := range blocks {
		want := "ACCEPTED_ON_L2"
		if i <= 4 {
			want = "ACCEPTED_ON_L1"
			events += b.EventCount()
		}
		out, err := n.ask(t, "starknet_getTransactionReceipt", fmt.Sprintf("[%q]", b.Transactions[0].Hash))
		if err != nil || !strings.Contains(string(out), `"finality_status":"`+want+`"`) {
			t.Errorf("block %d: %s, %v, want %s", b.Number, out, err, want)
		}
	}
	var page struct{ Events []json.RawMessage }
	out, err := n.ask(t, "starknet_getEvents", `[{"to_block":"l1_accepted","chunk_size":1000}]`)
	if err == nil {
		err = json.Unmarshal(out, &page)
	}
	if err != nil || len(page.Events) != events {
		t.Errorf("%d events up to that block, %v, want %d", len(page.Events), err, events)
	}
}
