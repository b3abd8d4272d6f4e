package differential

import (
	"strings"

	"github.com/ethereum/go-ethereum/common"
)

// rareQuestions returns each requests per unit of weight of rareKinds. They are not among those
// of questions, so that a seed still stands for the questions that it stood for before.
func rareQuestions(g *generator, each int) []question {
	return questionsOf(g, rareKinds(), each)
}

// rareKinds are methods, forms of parameters and options that few clients use.
func rareKinds() []kind {
	none := func(*generator) []any { return []any{} }
	return append(append(rareCalls(), rareTraces()...), []kind{
		{"eth_getBalance", 2, func(g *generator) []any { return []any{g.address(), g.form()} }},
		{"eth_getStorageAt", 2, (*generator).spelledSlot},
		{"eth_getProof", 2, (*generator).longProof}, {"eth_getStorageValues", 1, (*generator).manyValues},
		{"eth_getBlockReceipts", 1, func(g *generator) []any { return []any{g.form()} }},
		{"debug_getRawBlock", 1, func(g *generator) []any { return []any{g.form()} }},
		{"eth_getTransactionByBlockNumberAndIndex", 1, (*generator).blockAndIndex},
		{"eth_getUncleByBlockNumberAndIndex", 1, (*generator).blockAndIndex},
		{"eth_getLogs", 4, func(g *generator) []any { return []any{g.rareFilter()} }},
		{"eth_feeHistory", 2, (*generator).rareFeeHistory},
		{"eth_getFilterChanges", 0, (*generator).unknownFilter}, {"eth_getFilterLogs", 0, (*generator).unknownFilter},
		{"eth_uninstallFilter", 0, (*generator).unknownFilter},
		{"eth_capabilities", 0, none}, {"eth_pendingTransactions", 0, none},
		{"txpool_status", 0, none}, {"txpool_content", 0, none}, {"txpool_inspect", 0, none},
		{"txpool_contentFrom", 0, func(g *generator) []any { return []any{g.address()} }},
		{"debug_getModifiedAccountsByNumber", 1, func(g *generator) []any { return []any{g.number()} }},
		{"debug_getModifiedAccountsByHash", 1, (*generator).modifiedBetween},
	}...)
}

// form returns a block parameter of EIP-1898 with members that are rare or contradict each other,
// or one in a common form.
func (g *generator) form() any {
	hash, number := g.blockHash(), g.number()
	switch g.r.IntN(25) {
	case 0:
		return object{"blockNumber": quantity(number), "requireCanonical": g.chance(50)}
	case 1:
		return object{"blockHash": hash, "blockNumber": quantity(number)}
	case 2:
		return object{"blockHash": hash, "blockNumber": nil, "requireCanonical": nil}
	case 3:
		return object{"blockHash": nil, "blockNumber": quantity(number)}
	case 4:
		return pick(g, []any{object{}, object{"requireCanonical": true}, object{"blockNumber": nil}, object{"blockNumber": "pendin"}})
	case 5:
		return object{"blockHash": hash, "requireCanonical": pick(g, []any{"true", 1, object{}})}
	case 6:
		return pick(g, []object{{"blockNumber": number}, {"blockNumber": hash}, {"blockHash": quantity(number)}, {"blockNumber": "0x0" + quantity(number)[2:]}})
	case 7:
		return object{"blockHash": hash, "another": 1, "requireCanonical": true}
	case 8:
		return pick(g, []string{"0x7fffffffffffffff", "0x8000000000000000", "0xffffffffffffffff", "0x10000000000000000"})
	}
	return g.block()
}

// spelledSlot returns a slot in a notation that geth takes beside quantities and whole words.
func (g *generator) spelledSlot() []any {
	address, key := g.slot()
	digits := strings.TrimPrefix(key, "0x")
	key = pick(g, []string{digits, "0X" + digits, "0x" + strings.ToUpper(digits), "0x" + strings.TrimLeft(digits, "0"), "0x0" + digits, "00" + digits, "0x" + digits + "00"})
	return []any{address, key, g.form()}
}

// longProof asks for slots in several notations, or for more than there may be.
func (g *generator) longProof() []any {
	address, key := g.slot()
	keys := []string{key, strings.TrimPrefix(key, "0x"), "0x0", "0x00", quantity(g.r.Uint64N(300))}
	if g.chance(10) {
		for range 1020 {
			keys = append(keys, "0x1")
		}
	}
	if g.chance(20) {
		return []any{address, keys[:g.r.IntN(len(keys)+1)]}
	}
	return []any{address, keys, g.form()}
}

// manyValues asks for about as many slots as there may be, or for none.
func (g *generator) manyValues() []any {
	keys := make([]common.Hash, pick(g, []int{0, 1, 1023, 1024, 1025}))
	for i := range keys {
		keys[i] = common.Hash{30: byte(i >> 8), 31: byte(i)}
	}
	a, b := g.address(), g.address()
	return []any{pick(g, []object{{a.Hex(): keys}, {a.Hex(): keys, b.Hex(): keys[:min(1, len(keys))]}, {}}), g.form()}
}

func (g *generator) blockAndIndex() []any {
	return []any{g.blockNumber(), pick(g, []string{"0x0", "0x1", "0x5", "0x7fffffff", "0xffffffffffffffff"})}
}

// rareFilter returns a filter with null, unknown or contradictory members.
func (g *generator) rareFilter() object {
	f := g.filter()
	switch g.r.IntN(10) {
	case 0:
		f["address"] = nil
	case 1:
		f["topics"] = nil
	case 2:
		f["fromBlock"], f["toBlock"] = quantity(g.number()), quantity(g.number())
	case 3:
		f["blockHash"] = nil
	case 4:
		f = object{"blockHash": g.blockHash(), "toBlock": nil, "fromBlock": nil}
	case 5:
		f = object{"blockHash": g.blockHash(), "toBlock": quantity(g.number())}
	case 6:
		f["address"] = []any{pick(g, g.c.Emitters), nil}
	case 7:
		f["topics"] = []any{[]any{g.topic(0), nil}}
	case 8:
		f["limit"], f["data"] = 1, "0x"
	case 9:
		f["topics"] = pick(g, []any{object{}, []any{[]any{[]any{}}}, []any{17}, []any{"0x12"}, []any{g.topic(0), "0x"}})
	}
	return f
}

func (g *generator) rareFeeHistory() []any {
	counts := []any{"7", "20", "07", 7.0, "0x00", "-1", "0x5"}
	if g.first == 0 {
		counts = append(counts, "0x400", "1025")
	}
	ascending := make([]float64, 100)
	for i := range ascending {
		ascending[i] = float64(i) + 0.5
	}
	percentiles := []any{ascending, append(ascending, 99.9), []any{0.0}, []any{100}, []any{100.0001}, []any{50, 50, 50}, []any{"50"}, []any{nil}, []any{1e-9}, []any{5e1}}
	return []any{pick(g, counts), g.blockNumber(), pick(g, percentiles)}
}

func (g *generator) unknownFilter() []any {
	return []any{pick(g, []any{"0x1", g.hash().Hex(), "latest", ""})}
}

func (g *generator) modifiedBetween() []any {
	from := g.number()
	to := min(from+g.r.Uint64N(4), g.c.Head())
	return []any{g.c.Blocks[from].Hash, g.c.Blocks[to].Hash}
}
