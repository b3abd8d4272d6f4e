package conformance

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"ashlar/chain"
	"ashlar/evm/api"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/genesis"
	"ashlar/evm/ingest"
	"ashlar/evm/query"
	"ashlar/history/tip"
	"ashlar/internal/vectors"
	"ashlar/jsonrpc"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
)

// inProcess is a chain in memory that can be asked.
type inProcess struct {
	t        *testing.T
	follower *ingest.Follower
	server   *jsonrpc.Server
	store    *pebble.Store
}

func newInProcess(t *testing.T, first *core.Genesis) *inProcess {
	t.Helper()
	ctx := t.Context()
	store, err := pebble.Open(pebble.Options{Path: "network", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	a, err := archive.Create(ctx, store, first)
	if err != nil {
		t.Fatal(err)
	}
	executor, err := execute.New(first.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ingest.New(ctx, a, executor, first); err != nil {
		t.Fatal(err)
	}
	settled, _ := a.Settled()
	unsettled, err := tip.Open(ctx, store, archive.Tables(), settled)
	if err != nil {
		t.Fatal(err)
	}
	methods, err := api.New(query.NewChain(a, unsettled, executor), api.Config{}).Methods()
	if err != nil {
		t.Fatal(err)
	}
	return &inProcess{t, ingest.NewFollower(a, unsettled, executor, ingest.DefaultDepths()), jsonrpc.NewServer(methods.Handlers(), jsonrpc.Config{}), store}
}

func (p *inProcess) close() {
	p.t.Helper()
	if err := p.store.Close(); err != nil {
		p.t.Error(err)
	}
}

func (p *inProcess) add(blocks []*types.Block) {
	p.t.Helper()
	for _, block := range blocks {
		if err := p.follower.Add(p.t.Context(), block); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *inProcess) setHead(block *types.Block) {
	p.t.Helper()
	if err := p.follower.SetHead(p.t.Context(), block.Hash(), chain.Ref{}, chain.Ref{}); err != nil {
		p.t.Fatal(err)
	}
}

// answers returns the answers to requests.
func (p *inProcess) answers(requests [][]byte) (all [][]byte) {
	for _, request := range requests {
		all = append(all, p.server.Answer(context.Background(), request, nil))
	}
	return all
}

// siblings returns five branches of ten blocks on the same genesis.
func siblings(t *testing.T) (first *core.Genesis, branches [][]*types.Block) {
	t.Helper()
	first, _, err := genesis.Load(mergedGenesis(t, vectors.Path(t, "chains", "reorg-branches", "genesis.json")))
	if err != nil {
		t.Fatal(err)
	}
	for i := 1; i <= 5; i++ {
		blocks := readBlocks(t, vectors.Path(t, "chains", "reorg-branches", fmt.Sprintf("blocks_10_td_1971072_%d.rlp", i)))
		if len(blocks) != 10 {
			t.Fatalf("branch %d has %d blocks", i, len(blocks))
		}
		branches = append(branches, blocks)
	}
	return first, branches
}

// questionsAbout returns requests whose answers depend on the branch.
func questionsAbout(first *core.Genesis, branches [][]*types.Block) (requests [][]byte) {
	ask := func(method, params string, args ...any) {
		requests = append(requests, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"method":%q,"params":[`+params+`]}`, append([]any{method}, args...)...))
	}
	ask("eth_blockNumber", "")
	ask("eth_getLogs", `{"fromBlock":"0x0","toBlock":"latest"}`)
	ask("eth_feeHistory", `"0xa","latest",[25]`)
	ask("eth_gasPrice", "")
	for number := range 12 {
		ask("eth_getBlockByNumber", `"0x%x",true`, number)
		ask("eth_getBlockReceipts", `"0x%x"`, number)
	}
	addresses := make(map[common.Address]bool)
	for address := range first.Alloc {
		addresses[address] = true
	}
	signer := types.LatestSigner(first.Config)
	for _, blocks := range branches {
		for _, block := range blocks {
			addresses[block.Coinbase()] = true
			for _, tx := range block.Transactions() {
				ask("eth_getTransactionByHash", "%q", tx.Hash())
				ask("eth_getTransactionReceipt", "%q", tx.Hash())
				from, err := types.Sender(signer, tx)
				if err == nil {
					addresses[from] = true
				}
				if tx.To() != nil {
					addresses[*tx.To()] = true
				}
			}
		}
	}
	for address := range addresses {
		for _, at := range []string{"latest", "0x5"} {
			ask("eth_getBalance", "%q,%q", address, at)
			ask("eth_getTransactionCount", "%q,%q", address, at)
			ask("eth_getProof", "%q,[],%q", address, at)
		}
	}
	return requests
}

// permutations calls visit with every permutation of n elements.
func permutations(n int, visit func(order []int)) {
	order := make([]int, 0, n)
	used := make([]bool, n)
	var next func()
	next = func() {
		if len(order) == n {
			visit(order)
			return
		}
		for i := range n {
			if used[i] {
				continue
			}
			used[i], order = true, append(order, i)
			next()
			used[i], order = false, order[:len(order)-1]
		}
	}
	next()
}

// TestAnswersOnSiblings brings in five branches in every order, makes each the
// head in turn, and asks about everything that they hold: every answer is that of a
// chain which has never seen another branch.
func TestAnswersOnSiblings(t *testing.T) {
	first, branches := siblings(t)
	requests := questionsAbout(first, branches)
	var want [][][]byte // by branch
	for _, blocks := range branches {
		alone := newInProcess(t, first)
		alone.add(blocks)
		alone.setHead(blocks[9])
		want = append(want, alone.answers(requests))
		alone.close()
	}
	for i := range branches {
		differ := 0
		for j := range requests {
			if !bytes.Equal(want[i][j], want[(i+1)%len(want)][j]) {
				differ++
			}
		}
		if differ < len(requests)/4 {
			t.Fatalf("only %d of %d answers tell branch %d from the next", differ, len(requests), i+1)
		}
	}
	orders := 0
	permutations(len(branches), func(order []int) {
		orders++
		p := newInProcess(t, first)
		defer p.close()
		check := func(branch int, moment string) {
			for i, got := range p.answers(requests) {
				if !bytes.Equal(got, want[branch][i]) {
					t.Fatalf("order %v, branch %d, %s: %s is answered %.300s, expected %.300s", order, branch+1, moment, requests[i], got, want[branch][i])
				}
			}
		}
		for _, branch := range order {
			p.add(branches[branch])
			p.setHead(branches[branch][9])
			check(branch, "as it comes")
		}
		for _, branch := range order {
			p.setHead(branches[branch][4]) // half of it first
			p.setHead(branches[branch][9])
			check(branch, "made the head again")
		}
	})
	t.Logf("%d orders, %d questions at each of ten heads", orders, len(requests))
}
