package upstream_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"ashlar/chain"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// fakeNode is a node that serves one branch of a world. mischief is the percentage of
// faulty answers: dropped, delayed, wrong blocks, and blocks from other positions.
type fakeNode struct {
	name  string
	world *world // not changed during requests

	mu              sync.Mutex
	head            *types.Block
	safe, finalized chain.Ref
	mischief        int
	random          *rand.Rand
	watchers        []chan chain.Ref
	asked           map[string]int
	silent          bool          // it does not announce heads
	held            chan struct{} // if not nil, ranges of blocks wait until it is closed
	refusal         error         // returned by Send
	sent            [][]byte
	noPool          bool
	waiting         []*types.Transaction
}

func newFakeNode(name string, w *world) *fakeNode {
	return &fakeNode{name: name, world: w, head: w.builder.Genesis, random: rand.New(rand.NewPCG(w.Uint64(), 5)), asked: make(map[string]int)}
}

// set changes the state of the node.
func (f *fakeNode) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	for _, told := range f.watchers {
		select {
		case told <- ref(f.head):
		default:
		}
	}
}

var errDropped = errors.New("dropped")

// begin is called for each request; bad says that the answer must be wrong.
func (f *fakeNode) begin(ctx context.Context, method string) (head *types.Block, bad bool, err error) {
	f.mu.Lock()
	f.asked[method]++
	head = f.head
	bad = f.random.IntN(100) < f.mischief
	kind := f.random.IntN(4)
	f.mu.Unlock()
	if !bad {
		return head, false, ctx.Err()
	}
	switch kind {
	case 0:
		return head, false, errDropped
	case 1:
		time.Sleep(time.Millisecond)
		return head, false, ctx.Err()
	}
	return head, true, ctx.Err()
}

func (f *fakeNode) Name() string { return f.name }

func (f *fakeNode) Identity(ctx context.Context) (uint64, common.Hash, error) {
	_, _, err := f.begin(ctx, "identity")
	genesis := ingesttest.Genesis(f.world.t)
	return genesis.Config.ChainID.Uint64(), f.world.builder.Genesis.Hash(), err
}

func (f *fakeNode) Forkchoice(ctx context.Context) (node.Forkchoice, error) {
	head, bad, err := f.begin(ctx, "forkchoice")
	f.mu.Lock()
	defer f.mu.Unlock()
	forkchoice := node.Forkchoice{Head: ref(head), Safe: f.safe, Finalized: f.finalized}
	if bad { // a head that does not exist
		forkchoice.Head.Number += f.random.Uint64N(100)
		forkchoice.Head.Hash[3]++
	}
	return forkchoice, err
}

func (f *fakeNode) HashAt(ctx context.Context, number uint64) (common.Hash, error) {
	head, bad, err := f.begin(ctx, "hash")
	block := f.world.at(head, number)
	if err == nil && block == nil {
		err = node.ErrNotFound
	}
	if bad || err != nil {
		return common.Hash{1}, err
	}
	return block.Hash(), nil
}

func (f *fakeNode) Block(ctx context.Context, hash common.Hash) (*types.Block, error) {
	_, bad, err := f.begin(ctx, "block")
	block := f.world.blocks[hash]
	if err == nil && block == nil {
		err = node.ErrNotFound
	}
	if bad && err == nil {
		return f.wrong(block), nil
	}
	return block, err
}

func (f *fakeNode) Blocks(ctx context.Context, from uint64, count int) (blocks []*types.Block, err error) {
	if f.held != nil {
		select {
		case <-f.held:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	head, bad, err := f.begin(ctx, "blocks")
	for number := from; err == nil && len(blocks) < count; number++ {
		block := f.world.at(head, number)
		if block == nil && number == from {
			return nil, node.ErrNotFound
		}
		if block == nil {
			break
		}
		blocks = append(blocks, block)
	}
	if !bad || err != nil {
		return blocks, err
	}
	f.mu.Lock()
	kind, i := f.random.IntN(3), f.random.IntN(len(blocks))
	f.mu.Unlock()
	switch kind {
	case 0:
		blocks[i] = f.wrong(blocks[i])
	case 1:
		slices.Reverse(blocks)
	case 2:
		blocks[i] = blocks[0]
	}
	return blocks, nil
}

func (f *fakeNode) Headers(ctx context.Context, from uint64, count int) (headers []*types.Header, err error) {
	head, bad, err := f.begin(ctx, "headers")
	for i := 0; err == nil && i < count; i++ {
		block := f.world.at(head, from+uint64(i))
		if block == nil {
			return nil, node.ErrNotFound
		}
		if bad && i == count/2 {
			block = f.wrong(block)
		}
		headers = append(headers, block.Header())
	}
	return headers, err
}

// wrong returns an invalid block. Either its header is consistently wrong and so has
// another hash, or its body does not match the header.
func (f *fakeNode) wrong(block *types.Block) *types.Block {
	f.mu.Lock()
	defer f.mu.Unlock()
	header, body := block.Header(), *block.Body()
	switch f.random.IntN(6) {
	case 0:
		header.Root[7]++
	case 1:
		header.GasUsed++
	case 2:
		header.ReceiptHash[2]++
	case 3:
		header.Time = 1
	case 4:
		body.Withdrawals = nil
	case 5:
		header.ParentHash[9]++
	}
	return types.NewBlockWithHeader(header).WithBody(body)
}

func (f *fakeNode) SubscribeHeads(ctx context.Context, told func(chain.Ref)) error {
	if _, _, err := f.begin(ctx, "watch"); err != nil {
		return err
	}
	heads := make(chan chain.Ref, 1)
	f.mu.Lock()
	silent := f.silent
	f.watchers = append(f.watchers, heads)
	f.mu.Unlock()
	if silent {
		return node.ErrNoSubscriptions
	}
	for {
		select {
		case head := <-heads:
			told(head)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (f *fakeNode) Send(ctx context.Context, raw []byte) error {
	if _, _, err := f.begin(ctx, "send"); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sent = append(f.sent, raw)
	return f.refusal
}

func (f *fakeNode) Pool(ctx context.Context) ([]*types.Transaction, error) {
	_, _, err := f.begin(ctx, "pool")
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && f.noPool {
		err = node.ErrNoPool
	}
	return f.waiting, err
}

// SubscribePool is not supported here; tests of subscriptions use a real client and server.
func (f *fakeNode) SubscribePool(ctx context.Context, _ func(*types.Transaction)) error {
	if _, _, err := f.begin(ctx, "watch pool"); err != nil {
		return err
	}
	return node.ErrNoSubscriptions
}
