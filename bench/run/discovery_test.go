package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"ashlar/internal/node"
	"ashlar/internal/sample"
)

// Only contracts with balances are tokens: a pool reverts, and an account without code
// returns nothing.
func TestFindTokens(t *testing.T) {
	token, pool, bare, other := common.Address{1}, common.Address{2}, common.Address{3}, common.Address{4}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var call struct {
			Params [2]json.RawMessage
		}
		var message struct{ To common.Address }
		if err := json.NewDecoder(r.Body).Decode(&call); err != nil {
			t.Error(err)
		} else if err := json.Unmarshal(call.Params[0], &message); err != nil {
			t.Error(err)
		}
		answer := `"result":"0x` + strings.Repeat("00", 32) + `"`
		switch message.To {
		case pool:
			answer = `"error":{"code":3,"message":"execution reverted"}`
		case bare:
			answer = `"result":"0x"`
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,%s}`, answer)
	}))
	defer server.Close()
	chain := &sample.Chain{Accounts: []common.Address{{9}}, Emitters: []common.Address{token, pool, bare, other}}
	got, err := findTokens(t.Context(), node.NewClient(server.URL), chain)
	if want := []common.Address{token, other}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	chain.Emitters = []common.Address{pool, bare}
	if got, err := findTokens(t.Context(), node.NewClient(server.URL), chain); err == nil {
		t.Errorf("got tokens %v, want none", got)
	}
}
