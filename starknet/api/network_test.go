package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/chain"
	"ashlar/history/tip"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/ingest"
	"ashlar/starknet/query"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// network is a network that is asked through its methods.
type network struct {
	store    kv.Store
	archive  *archive.Archive
	follower *ingest.Follower // nil unless blocks are unsettled
	methods  jsonrpc.Handlers
}

// newNetwork makes a network whose blocks are all settled.
func newNetwork(t testing.TB, blocks ...*starknet.Block) *network {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "starknet", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a, err := archive.Create(t.Context(), store, "SN_MAIN")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Append(t.Context(), blocks...); err != nil {
		t.Fatal(err)
	}
	return &network{store: store, archive: a, methods: handlersOf(t, New(query.NewChain(a, noTip), Usual()))}
}

// handlersOf returns the handlers of an API's methods.
func handlersOf(t testing.TB, a *API) jsonrpc.Handlers {
	t.Helper()
	methods, err := a.Methods()
	if err != nil {
		t.Fatal(err)
	}
	return methods.Handlers()
}

// noTip is the tip of a network whose blocks are all settled.
func noTip() *tip.Tip { return nil }

// newFollowed makes a network whose blocks but the first stay unsettled until they
// lie that deep.
func newFollowed(t testing.TB, depth uint64, first *starknet.Block, others ...*starknet.Block) *network {
	t.Helper()
	n := newNetwork(t, first)
	var err error
	if n.follower, err = ingest.OpenFollower(t.Context(), n.store, n.archive, depth); err != nil {
		t.Fatal(err)
	}
	n.methods = handlersOf(t, New(query.NewChain(n.archive, n.follower.Tip), Usual()))
	n.follow(t, others...)
	return n
}

func (n *network) follow(t testing.TB, blocks ...*starknet.Block) {
	t.Helper()
	for _, block := range blocks {
		if err := n.follower.Append(t.Context(), block); err != nil {
			t.Fatal(err)
		}
	}
}

func (n *network) revert(t testing.TB, ancestor chain.Ref) {
	t.Helper()
	if err := n.follower.Revert(t.Context(), ancestor); err != nil {
		t.Fatal(err)
	}
}

// ask calls a method and returns its result.
func (n *network) ask(t testing.TB, method, params string) (json.RawMessage, error) {
	t.Helper()
	out, err := n.methods[method](t.Context(), []byte(params), nil)
	if err == nil && !json.Valid(out) {
		t.Fatalf("%s %s: the answer is no JSON: %s", method, params, out)
	}
	return out, err
}

// record is an event as it is answered.
type record struct {
	BlockHash   string   `json:"block_hash"`
	BlockNumber uint64   `json:"block_number"`
	Data        []string `json:"data"`
	From        string   `json:"from_address"`
	Keys        []string `json:"keys"`
	Transaction string   `json:"transaction_hash"`
}

type page struct {
	Events []record `json:"events"`
	Token  *string  `json:"continuation_token"`
}

// pageOf asks for one page. filter is the filter's members, without braces.
func (n *network) pageOf(t testing.TB, filter string, size int, token string) (p page, err error) {
	t.Helper()
	members := []string{fmt.Sprintf(`"chunk_size":%d`, size)}
	if filter != "" {
		members = append(members, filter)
	}
	if token != "" {
		members = append(members, fmt.Sprintf(`"continuation_token":%q`, token))
	}
	out, err := n.ask(t, "rollup_getEvents", `{"filter":{`+strings.Join(members, ",")+`}}`)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatal(err)
	}
	if p.Token != nil && (len(p.Events) != size || *p.Token == "") {
		t.Fatalf("%s: a page of %d with %d events and the token %q", filter, size, len(p.Events), *p.Token)
	}
	return p, nil
}

// pages asks for all pages, one after the other, and calls between after each but the last.
func (n *network) pages(t testing.TB, filter string, size int, between func()) (all []record) {
	t.Helper()
	token := ""
	for {
		p, err := n.pageOf(t, filter, size, token)
		if err != nil {
			t.Fatalf("%s, page of %d: %v", filter, size, err)
		}
		all = append(all, p.Events...)
		if p.Token == nil {
			return all
		}
		token = *p.Token
		if between != nil {
			between()
		}
	}
}

// code is the code of an error that is answered; 0 for none.
func code(err error) int {
	var e *jsonrpc.Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

// recordsOf are all events of a block, as they are to be answered.
func recordsOf(block *starknet.Block) (records []record) {
	for i := range block.Transactions {
		for _, event := range block.Transactions[i].Receipt.Events {
			records = append(records, record{
				BlockHash: block.Hash.String(), BlockNumber: block.Number, From: event.From.String(),
				Keys: texts(event.Keys), Data: texts(event.Data), Transaction: block.Transactions[i].Hash.String(),
			})
		}
	}
	return records
}

func texts(felts []starknet.Felt) []string {
	all := make([]string, 0, len(felts))
	for _, felt := range felts {
		all = append(all, felt.String())
	}
	return all
}
