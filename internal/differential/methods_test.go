package differential

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// notGenerated are methods that generated questions leave out, and why.
var notGenerated = map[string]string{
	"debug_executionWitnessByBlockHash":  "geth does not have it",
	"debug_getRawBlockAccessList":        "geth does not have it",
	"debug_traceCallMany":                "geth does not have it",
	"eth_callMany":                       "geth does not have it",
	"eth_getAccount":                     "geth does not have it",
	"eth_getAccountInfo":                 "geth does not have it",
	"eth_getBlockAccessList":             "geth does not have it",
	"eth_getTransactionBySenderAndNonce": "geth does not have it",
	"rollup_getEvents":                   "geth does not have it",
	"debug_subscribe":                    "compareChainTraces",
	"debug_unsubscribe":                  "compareChainTraces",
	"eth_newBlockFilter":                 "compareFilters",
	"eth_newFilter":                      "compareFilters",
	"eth_newPendingTransactionFilter":    "compareFilters",
	"eth_subscribe":                      "TestCrossing and the tests of internal/follow",
	"eth_unsubscribe":                    "TestCrossing and the tests of internal/follow",
	"eth_sendRawTransaction":             "TestCrossing and the tests of internal/follow",
	"eth_sendRawTransactionSync":         "it waits for a block; evm/api has tests",
}

// withoutGeth are the groups of methods that geth does not have. compareParity compares the
// first with a translation of what geth says.
var withoutGeth = []string{"trace_", "ots_", "erigon_"}

var documentedMethod = regexp.MustCompile("(?m)^\\| `([a-z0-9]+_[A-Za-z0-9]+)`")

// TestEveryMethodIsAsked holds the generated questions to the methods in docs/methods.md.
func TestEveryMethodIsAsked(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "methods.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, begins := strings.Cut(string(text), "### EVM networks\n")
	table, _, ends := strings.Cut(table, "\n### ")
	if !begins || !ends {
		t.Fatal("docs/methods.md has no table of the methods of EVM networks")
	}
	asked := map[string]bool{"debug_getBadBlocks": true}
	for _, all := range [][]kind{kinds(), addedKinds(), rareKinds()} {
		for _, k := range all {
			asked[k.method] = true
		}
	}
	documented := 0
method:
	for _, match := range documentedMethod.FindAllStringSubmatch(table, -1) {
		method := match[1]
		documented++
		for _, group := range withoutGeth {
			if strings.HasPrefix(method, group) {
				continue method
			}
		}
		if reason, left := notGenerated[method]; asked[method] == left {
			t.Errorf("%s is asked: %t, and left out: %q", method, asked[method], reason)
		}
	}
	if documented < 100 {
		t.Errorf("%d methods were found in docs/methods.md, want 100 and more", documented)
	}
}
