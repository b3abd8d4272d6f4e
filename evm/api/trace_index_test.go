package api_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/query"
	"ashlar/internal/raced"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// indexedChains are chains with what the index must get right: self-destructions, contracts
// that are created again, delegations, reverted calls, precompiled contracts and rewards.
func indexedChains(t *testing.T) map[string]func() (*core.Genesis, []*types.Block) {
	old := *params.AllEthashProtocolChanges // until London, mined
	old.BerlinBlock, old.LondonBlock, old.ArrowGlacierBlock, old.GrayGlacierBlock = big.NewInt(20), big.NewInt(30), nil, nil
	frontier := &params.ChainConfig{ChainID: big.NewInt(1), HomesteadBlock: big.NewInt(12), Ethash: new(params.EthashConfig)}
	chains := map[string]func() (*core.Genesis, []*types.Block){
		"demo":      func() (*core.Genesis, []*types.Block) { return ingesttest.Genesis(t), ingesttest.Chain(t) },
		"Amsterdam": func() (*core.Genesis, []*types.Block) { return ingesttest.Crossing(t) },
	}
	for seed := range uint64(2) {
		chains[fmt.Sprintf("random, mined, %d", seed)] = func() (*core.Genesis, []*types.Block) { return newRandomChain(seed).build(t, &old, 40) }
		chains[fmt.Sprintf("random, first rules, %d", seed)] = func() (*core.Genesis, []*types.Block) { return newRandomChain(seed).build(t, frontier, 20) }
		chains[fmt.Sprintf("random, Prague, %d", seed)] = func() (*core.Genesis, []*types.Block) {
			return newRandomChain(seed).build(t, madeGenesis().Config, 30)
		}
	}
	return chains
}

// TestTraceIndex compares the methods that use the trace index with scans of all frames of a
// chain, settled and unsettled, and with the answers of a network without the index.
func TestTraceIndex(t *testing.T) {
	raced.Skip(t)
	seen := make(map[string]bool)
	for name, build := range indexedChains(t) {
		t.Run(name, func(t *testing.T) {
			genesis, blocks := build()
			s := serve(t, genesis, ingesttest.SourceOf(blocks))
			all := scan(t, s)
			services := map[string]*service{
				"settled":       s,
				"unsettled":     serveUnsettled(t, genesis, ingesttest.SourceOf(blocks), uint64(len(blocks)/2)),
				"without index": serveWithout(t, genesis, ingesttest.SourceOf(blocks)),
			}
			for kind, s := range services {
				checkFilter(t, kind, s, all, uint64(len(blocks)))
				if kind != "without index" {
					checkSearch(t, kind, s, all)
					checkCreations(t, kind, s, all)
				}
			}
			maps.Copy(seen, all.kinds())
		})
	}
	for _, kind := range []string{"call", "create", "suicide", "reward", "Reverted", "Built-in failed", "created again"} {
		if !seen[kind] {
			t.Errorf("no chain has %s: %v", kind, seen)
		}
	}
}

// checkFilter compares trace_filter with a scan, for random filters.
func checkFilter(t *testing.T, kind string, s *service, all scanned, head uint64) {
	t.Helper()
	random := rand.New(rand.NewPCG(7, head))
	addresses := all.addresses()
	some := func() []common.Address {
		chosen := make([]common.Address, random.IntN(4))
		for i := range chosen {
			chosen[i] = addresses[random.IntN(len(addresses))]
		}
		return chosen
	}
	for range 60 {
		from := random.Uint64N(head + 1)
		to := from + random.Uint64N(head-from+1)
		senders, receivers, both := some(), some(), random.IntN(2) == 0
		skip, count := random.IntN(2)*random.IntN(5), random.IntN(20)
		filter := map[string]any{"fromBlock": hexutil.Uint64(from), "toBlock": hexutil.Uint64(to), "fromAddress": senders, "toAddress": receivers, "after": skip}
		if both {
			filter["mode"] = "intersection"
		}
		if count < 15 {
			filter["count"] = count
		} else {
			count = len(all)
		}
		want := []json.RawMessage{}
		for i := range all {
			f := &all[i]
			if f.BlockNumber < from || f.BlockNumber > to || !selects(f, senders, receivers, both) {
				continue
			}
			if skip--; skip < 0 && len(want) < count {
				want = append(want, f.text)
			}
		}
		var got []json.RawMessage
		s.ask(t, &got, "trace_filter", filter)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %v: %d frames, want %d", kind, filter, len(got), len(want))
		}
	}
}

// searchedPage is an answer of ots_searchTransactions.
type searchedPage struct {
	Txs []struct {
		Hash        common.Hash
		BlockNumber hexutil.Uint64
	}
	Receipts []struct {
		TransactionHash common.Hash
		BlockNumber     hexutil.Uint64
		Timestamp       uint64
		Logs            []any
	}
	FirstPage, LastPage bool
}

// checkSearch pages through the transactions of some addresses in both directions.
func checkSearch(t *testing.T, kind string, s *service, all scanned) {
	t.Helper()
	addresses := all.addresses()
	random := rand.New(rand.NewPCG(8, uint64(len(all))))
	random.Shuffle(len(addresses), func(i, j int) { addresses[i], addresses[j] = addresses[j], addresses[i] })
	for _, address := range addresses[:min(len(addresses), 12)] {
		var want []common.Hash // newest first
		for i := range all {
			f := &all[i]
			if f.TransactionHash != nil && f.is(address) && (len(want) == 0 || want[0] != *f.TransactionHash) {
				want = slices.Insert(want, 0, *f.TransactionHash)
			}
		}
		size := 1 + random.IntN(5)
		if got := searchAll(t, s, "ots_searchTransactionsBefore", address, size); !slices.Equal(got, want) {
			t.Errorf("%s: %s, backward by %d: %d transactions %v, want %d %v", kind, address, size, len(got), got, len(want), want)
		}
		slices.Reverse(want)
		got := searchAll(t, s, "ots_searchTransactionsAfter", address, size)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %s, forward by %d: %d transactions, want %d", kind, address, size, len(got), len(want))
		}
	}
}

// searchAll pages through the transactions of an address in the direction of a method.
func searchAll(t *testing.T, s *service, method string, address common.Address, size int) (all []common.Hash) {
	t.Helper()
	backward := method == "ots_searchTransactionsBefore"
	for block := uint64(0); ; {
		var page searchedPage
		s.ask(t, &page, method, address, block, size)
		begins, ends := page.FirstPage, page.LastPage
		if !backward {
			begins, ends = page.LastPage, page.FirstPage
			slices.Reverse(page.Txs)
			slices.Reverse(page.Receipts)
		}
		if begins != (block == 0) || len(page.Txs) < size && !ends || len(page.Receipts) != len(page.Txs) {
			t.Fatalf("%s %s %d %d: %d transactions, %d receipts, first page %v, last page %v", method, address, block, size, len(page.Txs), len(page.Receipts), page.FirstPage, page.LastPage)
		}
		for i, tx := range page.Txs {
			if r := page.Receipts[i]; r.TransactionHash != tx.Hash || r.BlockNumber != tx.BlockNumber || r.Timestamp == 0 || r.Logs == nil {
				t.Fatalf("receipt %+v of transaction %s", r, tx.Hash)
			}
			all = append(all, tx.Hash)
			block = uint64(tx.BlockNumber)
		}
		if ends {
			return all
		}
	}
}

// checkCreations compares the creators of contracts with the last creations that stand.
func checkCreations(t *testing.T, kind string, s *service, all scanned) {
	t.Helper()
	type creation struct {
		Hash    common.Hash
		Creator common.Address
	}
	want := make(map[common.Address]creation)
	for i := range all {
		if f := &all[i]; f.Type == "create" && f.to() != nil && all.stands(i) {
			want[*f.to()] = creation{*f.TransactionHash, *f.from()}
		}
	}
	for _, address := range all.addresses() {
		var there bool
		s.ask(t, &there, "ots_hasCode", address, "latest")
		var got *creation
		s.ask(t, &got, "ots_getContractCreator", address)
		created, ok := want[address]
		if ok = ok && there; ok != (got != nil) || ok && *got != created {
			t.Errorf("%s: creator of %s: %+v, want %v %+v", kind, address, got, ok, created)
		}
	}
}

// serveWithout serves a chain without a trace index.
func serveWithout(t *testing.T, g *core.Genesis, source *ingesttest.Source) *service {
	t.Helper()
	_, settled, executor := newChainWith(t, g, false)
	importInto(t, settled, executor, g, source)
	return serveChain(query.NewChain(settled, nil, executor))
}

// TestTooManyTraces: a filter that selects more traces than the limit is refused, and the
// range that the refusal suggests is the longest that fits.
func TestTooManyTraces(t *testing.T) {
	genesis, blocks := newRandomChain(1).build(t, madeGenesis().Config, 20)
	_, settled, executor := newChain(t, genesis)
	importInto(t, settled, executor, genesis, ingesttest.SourceOf(blocks))
	view, err := query.NewChain(settled, nil, executor).View()
	if err != nil {
		t.Fatal(err)
	}
	count := func(filter query.TraceFilter, limit int) (n int, err error) {
		found, err := view.FindTraces(t.Context(), &filter, limit)
		for _, block := range found {
			n += len(block.Positions)
		}
		return n, err
	}
	fitting := 0
	for _, addresses := range [][]common.Address{nil, {common.Address{0xc0, 19: 3}}, {common.Address{0xc0, 19: 1}, common.Address{0xc0, 19: 2}}} {
		filter := query.TraceFilter{From: 1, To: 20, Receivers: addresses, Max: query.AllTraces}
		all, err := count(filter, 1<<30)
		if err != nil || all == 0 {
			t.Fatalf("%v: %d traces, %v", addresses, all, err)
		}
		if n, err := count(filter, all); n != all || err != nil {
			t.Errorf("%v: %d traces, %v at the limit", addresses, n, err)
		}
		for limit := range all {
			_, err := count(filter, limit)
			tooMany := (*query.TooManyTraces)(nil)
			if !errors.As(err, &tooMany) {
				t.Fatalf("%v: %v at a limit of %d, want TooManyTraces", addresses, err, limit)
			}
			if !tooMany.Fits {
				continue
			}
			fitting++
			part := filter
			part.From, part.To = tooMany.From, tooMany.To
			if n, err := count(part, limit); n > limit || err != nil {
				t.Errorf("%v: %d traces, %v in the suggested range, want at most %d", addresses, n, err, limit)
			}
			part.To++
			if n, err := count(part, 1<<30); n <= limit || err != nil {
				t.Errorf("%v: %d traces, %v in a range longer than suggested, want more than %d", addresses, n, err, limit)
			}
		}
		filter.Max = 3
		if n, err := count(filter, 3); n != min(3, all) || err != nil {
			t.Errorf("%v: %d traces, %v with a maximum of 3", addresses, n, err)
		}
	}
	if fitting == 0 {
		t.Error("no range was suggested")
	}
}

// TestSearchWithoutIndex: a search in a network without a trace index says what it lacks.
func TestSearchWithoutIndex(t *testing.T) {
	genesis, blocks := newRandomChain(3).build(t, madeGenesis().Config, 1)
	s := serveWithout(t, genesis, ingesttest.SourceOf(blocks))
	for _, method := range []string{"ots_searchTransactionsBefore", "ots_searchTransactionsAfter"} {
		if a := s.answer(t, method, common.Address{1}, 0, 25); !strings.Contains(string(a.Error), "trace_index") {
			t.Errorf("%s: %s %s", method, a.Result, a.Error)
		}
	}
}
