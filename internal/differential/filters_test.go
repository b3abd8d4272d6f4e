package differential

import (
	"math/rand/v2"
	"testing"

	"ashlar/internal/node"
	"ashlar/internal/sample"
)

// comparedFilters is how many filters compareFilters installs.
const comparedFilters = 60

// compareFilters installs filters and compares what both servers say of them until they are removed.
func compareFilters(t *testing.T, chain *sample.Chain, geth, ashlar *node.Client) {
	t.Helper()
	g := &generator{r: rand.New(rand.NewPCG(*seed, 2)), c: chain}
	var all []question
	var outcomes []outcome
	add := func(q question, theirs, ours answer) {
		all = append(all, q)
		outcomes = append(outcomes, outcome{theirs, ours, differences(theirs, ours)})
	}
	installed := 0
	for i := range comparedFilters {
		q := question{"eth_newFilter", []any{g.rareFilter()}}
		switch i {
		case 0:
			q = question{"eth_newBlockFilter", []any{}}
		case 1:
			q = question{"eth_newPendingTransactionFilter", []any{}}
		case 2:
			q = question{"eth_newPendingTransactionFilter", []any{true}}
		}
		if q.beginsEarly() {
			continue
		}
		o := ask(t, []question{q}, geth, ashlar)[0]
		if o.geth.err != nil || o.ashlar.err != nil {
			add(q, o.geth, o.ashlar)
			continue
		}
		installed++
		for _, method := range []string{"eth_getFilterLogs", "eth_getFilterChanges", "eth_uninstallFilter", "eth_uninstallFilter", "eth_getFilterLogs"} {
			add(question{method, q.Params}, once(t, geth, method, o.geth.result), once(t, ashlar, method, o.ashlar.result))
		}
	}
	report(t, all, outcomes)
	if installed < comparedFilters/3 {
		t.Errorf("%d filters were installed, expected %d and more", installed, comparedFilters/3)
	}
}

// once asks one server about a filter.
func once(t *testing.T, of *node.Client, method string, id any) answer {
	t.Helper()
	body, err := node.Request(1, method, id)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := post(t.Context(), t, of, body)
	if err != nil {
		t.Fatal(err)
	}
	a, err := parse(method, raw)
	if err != nil {
		t.Fatalf("%s: %v", method, err)
	}
	return a
}

// beginsEarly reports whether a filter is from the first block to the first block, which geth
// 1.17.8 refuses.
func (q question) beginsEarly() bool {
	from, to := q.member("fromBlock"), q.member("toBlock")
	return (from == "earliest" || from == "0x0") && to == "earliest"
}
