package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"ashlar/chain"
	"ashlar/evm/source/node"
	"ashlar/internal/fakenode"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/trie"
)

// makeChain returns blocks with every kind of content that a body can have. They violate many
// consensus rules, which do not matter here.
func makeChain(t *testing.T, count int) []*types.Block {
	t.Helper()
	key, err := crypto.ToECDSA(common.LeftPadBytes([]byte{7}, 32))
	if err != nil {
		t.Fatal(err)
	}
	signer := types.LatestSigner(params.MergedTestChainConfig)
	var blocks []*types.Block
	var parent common.Hash
	for number := range int64(count) {
		header := &types.Header{
			Number: big.NewInt(number), ParentHash: parent, Difficulty: big.NewInt(number % 2), GasLimit: 30_000_000,
			Time: uint64(number), BaseFee: big.NewInt(1000), Extra: []byte("made for a test"),
		}
		body := types.Body{Withdrawals: []*types.Withdrawal{{Index: uint64(number), Validator: 3, Address: common.Address{1}, Amount: 5}}}
		for nonce := range uint64(3) {
			tx, err := types.SignNewTx(key, signer, &types.DynamicFeeTx{
				ChainID: params.MergedTestChainConfig.ChainID, Nonce: nonce, GasFeeCap: big.NewInt(3000), GasTipCap: big.NewInt(1),
				Gas: 21000, To: &common.Address{9}, Value: big.NewInt(number), Data: []byte{1, 2},
			})
			if err != nil {
				t.Fatal(err)
			}
			body.Transactions = append(body.Transactions, tx)
		}
		if number%3 == 2 { // real blocks have either uncles or withdrawals, but a client need not know
			for _, extra := range []string{"first", "second"} {
				body.Uncles = append(body.Uncles, &types.Header{Number: big.NewInt(number - 1), Difficulty: big.NewInt(1), Extra: []byte(extra)})
			}
		}
		block := types.NewBlock(header, &body, nil, trie.NewStackTrie(nil))
		blocks, parent = append(blocks, block), block.Hash()
	}
	return blocks
}

func ref(block *types.Block) chain.Ref {
	return chain.Ref{Number: block.NumberU64(), Hash: block.Hash()}
}

// start starts a node that serves a chain, and returns a client of it.
func start(t *testing.T, options fakenode.Options, socket bool, blocks []*types.Block) (*fakenode.Node, *node.Client) {
	t.Helper()
	options.ChainID = 77
	n, err := fakenode.New(options, blocks[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	n.Set(blocks, uint64(len(blocks)-2), uint64(len(blocks)-4))
	url := n.URL()
	if socket {
		url = n.SocketURL()
	}
	client, err := node.New(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return n, client
}

func TestBlocksAreRebuilt(t *testing.T) {
	blocks := makeChain(t, 9)
	for _, test := range []struct {
		name    string
		options fakenode.Options
		socket  bool
	}{
		{"raw over HTTP", fakenode.Options{Raw: true}, false},
		{"objects over HTTP", fakenode.Options{}, false},
		{"raw over WebSocket", fakenode.Options{Raw: true}, true},
		{"objects over WebSocket", fakenode.Options{}, true},
		{"no batches", fakenode.Options{Between: refuseBatches}, false},
		{"forbidden methods", fakenode.Options{Raw: true, Between: forbidRaw}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, client := start(t, test.options, test.socket, blocks)
			id, genesis, err := client.Identity(t.Context())
			if err != nil || id != 77 || genesis != blocks[0].Hash() {
				t.Errorf("the identity is %d, %#x, %v", id, genesis, err)
			}
			forkchoice, err := client.Forkchoice(t.Context())
			if want := (node.Forkchoice{Head: ref(blocks[8]), Safe: ref(blocks[7]), Finalized: ref(blocks[5])}); err != nil || forkchoice != want {
				t.Errorf("the forkchoice is %v, %v, expected %v", forkchoice, err, want)
			}
			for _, want := range blocks {
				got, err := client.Block(t.Context(), want.Hash())
				sameBlock(t, got, want, err)
			}
			got, err := client.Blocks(t.Context(), 2, 20) // only seven exist
			if err != nil || len(got) != 7 {
				t.Fatalf("%d blocks, %v, expected 7", len(got), err)
			}
			for i := range got {
				sameBlock(t, got[i], blocks[2+i], nil)
			}
			if _, err := client.Block(t.Context(), common.Hash{1}); !errors.Is(err, node.ErrNotFound) {
				t.Errorf("a block that is not there: %v", err)
			}
			if _, err := client.Blocks(t.Context(), 9, 2); !errors.Is(err, node.ErrNotFound) {
				t.Errorf("blocks that are not there: %v", err)
			}
			if _, err := client.HashAt(t.Context(), 9); !errors.Is(err, node.ErrNotFound) {
				t.Errorf("a number that is not there: %v", err)
			}
		})
	}
}

func sameBlock(t *testing.T, got, want *types.Block, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
		return
	}
	if got.Hash() != want.Hash() || types.DeriveSha(got.Transactions(), trie.NewStackTrie(nil)) != want.TxHash() ||
		types.CalcUncleHash(got.Uncles()) != want.UncleHash() ||
		types.DeriveSha(types.Withdrawals(got.Withdrawals()), trie.NewStackTrie(nil)) != *want.Header().WithdrawalsHash {
		t.Errorf("block %s was changed to %s", ref(want), ref(got))
	}
}

func readBody(r *http.Request) string {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	return string(body)
}

func refuseBatches(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(readBody(r), "[") {
			http.Error(w, "no batches here", http.StatusBadRequest)
			return
		}
		to.ServeHTTP(w, r)
	})
}

func forbidRaw(to http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(readBody(r), "debug_") {
			http.Error(w, "not in your plan", http.StatusForbidden)
			return
		}
		to.ServeHTTP(w, r)
	})
}

func TestAnnouncedHeads(t *testing.T) {
	blocks := makeChain(t, 9)
	n, client := start(t, fakenode.Options{Subscriptions: true}, true, blocks)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heads, done := make(chan chain.Ref, 16), make(chan error, 1)
	go func() {
		done <- client.SubscribeHeads(ctx, func(head chain.Ref) {
			select {
			case heads <- head:
			case <-ctx.Done(): // the test has ended
			}
		})
	}()
	for got := (chain.Ref{}); got != ref(blocks[4]); { // repeat until it has subscribed
		n.Set(blocks[:5], 0, 0)
		select {
		case got = <-heads:
		case err := <-done:
			t.Fatalf("the subscription ended with %v", err)
		case <-time.After(time.Millisecond):
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the subscription ended with %v", err)
	}

	for _, socket := range []bool{false, true} {
		_, client := start(t, fakenode.Options{}, socket, blocks)
		if err := client.SubscribeHeads(t.Context(), func(chain.Ref) {}); !errors.Is(err, node.ErrNoSubscriptions) {
			t.Errorf("a node without subscriptions, over WebSocket %t: %v", socket, err)
		}
	}
}

// A lost connection ends requests in progress, and the next request reconnects.
func TestConnectsAgain(t *testing.T) {
	blocks := makeChain(t, 9)
	n, client := start(t, fakenode.Options{Subscriptions: true}, true, blocks)
	if _, err := client.Forkchoice(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.Disconnect()
	for attempt := 0; ; attempt++ {
		_, err := client.Forkchoice(t.Context())
		if err == nil {
			break
		}
		if attempt == 100 {
			t.Fatal(err)
		}
	}
}

// Responses that no honest node gives are distinguished from missing ones.
func TestInvalidAnswers(t *testing.T) {
	blocks := makeChain(t, 6)
	answer := func(result string) func(http.Handler) http.Handler {
		return func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":%s}`, result)
			})
		}
	}
	for _, test := range []struct {
		name, result string
		invalid      bool
	}{
		{"no bytes", `"0xzz"`, true},
		{"no raw block, as geth says it of a number", `"0x"`, false},
		{"no block", `"0xc0"`, true},
		{"bytes that are cut", `"0xf90200"`, true},
		{"a number", `5`, true},
		{"an empty object", `{}`, true},
		{"null", `null`, false},
	} {
		_, client := start(t, fakenode.Options{Between: answer(test.result)}, false, blocks)
		_, err := client.Block(t.Context(), blocks[3].Hash())
		var invalid *node.InvalidError
		if err == nil || errors.As(err, &invalid) != test.invalid {
			t.Errorf("%s: the error is %v, expected an invalid answer: %t", test.name, err, test.invalid)
		}
	}
	for _, test := range []struct {
		name  string
		chain []*types.Block
	}{
		{"numbers in another order", []*types.Block{blocks[0], blocks[1], blocks[3], blocks[2], blocks[4]}},
		{"a number twice", []*types.Block{blocks[0], blocks[1], blocks[1], blocks[3], blocks[4]}},
	} {
		n, client := start(t, fakenode.Options{Raw: true}, false, blocks)
		n.Set(test.chain, 0, 0)
		_, err := client.Blocks(t.Context(), 0, 5)
		var invalid *node.InvalidError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: the error is %v, expected an invalid answer", test.name, err)
		}
	}
}

// No error contains the URL, or much of what a node sends.
func TestSecrets(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, url := range []string{gone.URL, "ws" + strings.TrimPrefix(gone.URL, "http")} {
		client, err := node.New(url + "/v3/secret?token=secret")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Forkchoice(t.Context()); err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(client.Name(), "secret") {
			t.Errorf("the error of %s is %v", client.Name(), err)
		}
		client.Close()
	}
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(map[bool]int{true: http.StatusNotFound, false: http.StatusBadGateway}[strings.Contains(r.URL.Path, "lost")])
		fmt.Fprintf(w, "Cannot %s %s %s", r.Method, r.URL, strings.Repeat("<p>", 1<<16))
	}))
	defer refusing.Close()
	for _, path := range []string{"/v3/secret-key", "/lost/secret-key", "/v3?key=secret-key"} {
		client, err := node.New(refusing.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Forkchoice(t.Context()); err == nil || strings.Contains(err.Error(), "secret") || len(err.Error()) > 500 {
			t.Errorf("the error of %s has %d bytes: %.500v", path, len(err.Error()), err)
		}
		client.Close()
	}
	for _, url := range []string{"", "localhost:8545", "ftp://example.org", "http://", "http://secret\x7f"} {
		if _, err := node.New(url); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("the URL %q: %v", url, err)
		}
	}
}

// A header without numbers that are zero has the same hash, and is completed.
func TestHeadersAreCompleted(t *testing.T) {
	blocks := makeChain(t, 1)
	want := blocks[0].Header()
	want.BaseFee, want.BlobGasUsed, want.ExcessBlobGas, want.ParentBeaconRoot = new(big.Int), new(uint64), new(uint64), new(common.Hash)
	for _, lacking := range [][]string{nil, {"baseFeePerGas"}, {"blobGasUsed"}, {"excessBlobGas"}, {"baseFeePerGas", "blobGasUsed", "excessBlobGas"}} {
		var members map[string]any
		text, err := want.MarshalJSON()
		if err == nil {
			err = json.Unmarshal(text, &members)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range lacking {
			delete(members, name)
		}
		if text, err = json.Marshal(members); err != nil {
			t.Fatal(err)
		}
		got, err := node.ParseHeader(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("without %v: %+v, %v, expected %+v", lacking, got, err, want)
		}
	}
}
