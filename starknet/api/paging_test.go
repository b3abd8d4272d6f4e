package api

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ashlar/history/paging"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/source/synthetic"
)

// question is a random filter: as it is asked, and in a form to go through events with.
type question struct {
	text     string
	from, to uint64
	address  string
	keys     [][]string
}

// matches reports whether a record is asked for, looking at it alone.
func (q *question) matches(r record) bool {
	if r.BlockNumber < q.from || r.BlockNumber > q.to || q.address != "" && r.From != q.address {
		return false
	}
	for i, allowed := range q.keys {
		if len(allowed) > 0 && (i >= len(r.Keys) || !slices.Contains(allowed, r.Keys[i])) {
			return false
		}
	}
	return true
}

func (q *question) naive(blocks []*starknet.Block) (found []record) {
	for _, block := range blocks {
		for _, r := range recordsOf(block) {
			if q.matches(r) {
				found = append(found, r)
			}
		}
	}
	return found
}

// ask makes a question about a chain from one block to another, some of them with
// the tags and omissions that clients use.
func ask(random *rand.Rand, first, last uint64) *question {
	q := &question{from: first + random.Uint64N(last-first+1), to: first + random.Uint64N(last-first+1)}
	var members []string
	switch random.IntN(4) {
	case 0:
		q.from = first
		members = append(members, []string{`"from_block":null`, fmt.Sprintf(`"from_block":{"block_number":%d}`, first)}[random.IntN(2)])
	default:
		members = append(members, fmt.Sprintf(`"from_block":{"block_number":%d}`, q.from))
	}
	switch random.IntN(4) {
	case 0:
		q.to = math.MaxUint64 // whatever the latest is
		members = append(members, []string{`"to_block":"latest"`, `"to_block":"pending"`, `"address":null`}[random.IntN(3)])
	default:
		members = append(members, fmt.Sprintf(`"to_block":{"block_number":%d}`, q.to))
	}
	if random.IntN(3) == 0 {
		q.address = synthetic.Contract(random.IntN(12)).String()
		members = append(members, fmt.Sprintf(`"address":"0x0%s"`, strings.ToUpper(q.address[2:])))
	}
	var positions []string
	for i := range random.IntN(4) {
		var allowed []string
		for range random.IntN(3) * random.IntN(4) {
			key := synthetic.Account(random.IntN(30))
			if i == 0 {
				key = synthetic.Selector(random.IntN(5))
			}
			allowed = append(allowed, key.String())
		}
		q.keys = append(q.keys, allowed)
		positions = append(positions, strings.ReplaceAll(fmt.Sprintf("%q", append([]string{}, allowed...)), " ", ","))
	}
	if positions != nil {
		members = append(members, `"keys":[`+strings.Join(positions, ",")+`]`)
	}
	q.text = strings.Join(members, ",")
	return q
}

// made is a chain with keys that are few enough to be asked for.
func made(seed uint64, first uint64) *synthetic.Chain {
	options := synthetic.Default()
	options.Seed, options.First, options.Transactions, options.Accounts = seed, first, 2, 30
	return synthetic.New(options)
}

func next(chain *synthetic.Chain, n int) (blocks []*starknet.Block) {
	for range n {
		blocks = append(blocks, chain.Next())
	}
	return blocks
}

// TestPagesAreTheNaiveAnswer compares random filters over random chains, of which
// some blocks are settled and some are not, with a walk over all events, while
// blocks arrive between the pages.
func TestPagesAreTheNaiveAnswer(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	found := 0
	for round := range 10 {
		first := random.Uint64N(3) * 1000
		chain := made(uint64(round), first)
		blocks := next(chain, 1+random.IntN(40))
		n := newFollowed(t, uint64(random.IntN(30)), blocks[0], blocks[1:]...)
		for range 12 {
			q := ask(random, first, blocks[len(blocks)-1].Number)
			for _, size := range []int{1, 2, 7, 100, 1024} {
				want := q.naive(blocks) // which blocks that arrive during the question do not change
				found += len(want)
				got := n.pages(t, q.text, size, func() {
					if random.IntN(20) == 0 {
						arrived := chain.Next()
						n.follow(t, arrived)
						blocks = append(blocks, arrived)
					}
				})
				if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
					t.Fatalf("round %d, %s in pages of %d: %d events, want %d\ngot  %v\nwant %v", round, q.text, size, len(got), len(want), got, want)
				}
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d events were asked for", found)
	}
}

// TestCollidingTerms: the index may name events that a filter does not accept, since collisions of its terms can be constructed.
// Here each term names all events of the blocks that it is in.
func TestCollidingTerms(t *testing.T) {
	blocks := next(made(8, 0), 20)
	n := newNetwork(t, blocks...)
	table, any := archive.NamedTables().EventPostings, archive.AnyTerm()
	batch := n.store.NewBatch()
	for row, err := range n.store.Walk(t.Context(), table, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all, err := n.store.Get(t.Context(), table, any[:], row.Sort, nil)
		if err != nil {
			t.Fatal(err)
		}
		batch.Put(table, row.Partition, row.Sort, all)
	}
	if err := n.store.Write(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(2, 5))
	found := 0
	for range 100 {
		q := ask(random, 0, blocks[len(blocks)-1].Number)
		got, want := n.pages(t, q.text, 7, nil), q.naive(blocks)
		found += len(want)
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %d events, want %d\ngot  %v\nwant %v", q.text, len(got), len(want), got, want)
		}
	}
	if found < 100 {
		t.Errorf("only %d events were asked for", found)
	}
}

// TestArrivalsStayOut: the range of the first page is that of all.
func TestArrivalsStayOut(t *testing.T) {
	chain := made(3, 0)
	blocks := next(chain, 20)
	for _, to := range []string{`"to_block":"latest"`, `"to_block":"pending"`, `"to_block":{"block_number":5000}`, `"to_block":null`, ``} {
		n := newFollowed(t, 8, blocks[0], blocks[1:]...)
		further := chain.Fork(7)
		var want []record
		for _, block := range blocks {
			want = append(want, recordsOf(block)...)
		}
		filter := `"from_block":{"block_number":0}`
		if to != "" {
			filter += "," + to
		}
		got := n.pages(t, filter, 3, func() { n.follow(t, further.Next()) })
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %d events, want %d", to, len(got), len(want))
		}
	}
}

// TestReorganizationsBetweenPages: a token of a random filter goes on where its block
// is still part of the chain, and then with the new chain's events; else it is refused.
func TestReorganizationsBetweenPages(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 5))
	refused, wentOn := 0, 0
	for round := range 300 {
		chain := made(uint64(round), 5)
		common := next(chain, 6)
		fork := chain.Fork(uint64(1000 + round))
		old := append(slices.Clone(common), next(chain, 12)...)
		n := newFollowed(t, 30, old[0], old[1:]...)
		last := old[len(old)-1].Number
		q := ask(random, 5, last)
		size := 1 + random.IntN(4)
		got, token := n.somePages(t, q.text, size, 1+random.IntN(10))
		if token == "" {
			continue // there was no more to ask for
		}
		n.revert(t, common[5].Ref())
		other := next(fork, random.IntN(20))
		n.follow(t, other...)

		read, err := paging.ParseToken([]byte(token))
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.pageOf(t, q.text, size, token)
		if read.Next.Block > common[5].Number {
			if code(err) != 33 {
				t.Fatalf("round %d: %v, want code 33 for block %d", round, err, read.Next.Block)
			}
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("round %d: %v for block %d, which is there", round, err, read.Next.Block)
		}
		wentOn++
		for got = append(got, p.Events...); p.Token != nil; got = append(got, p.Events...) {
			if p, err = n.pageOf(t, q.text, size, *p.Token); err != nil {
				t.Fatal(err)
			}
		}
		q.to = min(q.to, last)
		if want := q.naive(append(slices.Clone(common), other...)); !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d, %s: %d events, want %d of the new chain", round, q.text, len(got), len(want))
		}
	}
	if refused < 15 || wentOn < 15 {
		t.Errorf("%d tokens were refused and %d went on: too few to tell", refused, wentOn)
	}
}

// somePages asks for at most so many pages, and returns the token of the next; empty
// where there is none.
func (n *network) somePages(t *testing.T, filter string, size, most int) (all []record, token string) {
	t.Helper()
	for range most {
		p, err := n.pageOf(t, filter, size, token)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Events...)
		if p.Token == nil {
			return all, ""
		}
		token = *p.Token
	}
	return all, token
}
