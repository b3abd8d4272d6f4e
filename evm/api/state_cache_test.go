package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"ashlar/chain"
	"ashlar/evm/api"
	"ashlar/evm/ingest"
	"ashlar/evm/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
	"golang.org/x/sync/errgroup"
)

// cached is a chain twice: with caches of its state, and without.
type cached struct {
	chains    [2]*query.Chain
	followers [2]*ingest.Follower
	methods   [2]jsonrpc.Handlers
}

func newCached(t *testing.T) *cached {
	c := new(cached)
	for i, cacheBytes := range []int64{256 << 10, 0} {
		c.chains[i], c.followers[i] = newFollowerWith(t, ingest.Depths{Unfinalized: 4, Most: 4}, cacheBytes)
		c.methods[i] = methodsOf(api.New(c.chains[i], api.Config{})).Handlers()
	}
	return c
}

// ask makes a random request about a block, and compares the answers. It returns false if one
// of the chains does not have the block: they settle blocks, and leave branches, by themselves.
func (c *cached) ask(t *testing.T, r *rand.Rand, block *types.Block) (bool, error) {
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		return false, err
	}
	accounts := []common.Address{crypto.PubkeyToAddress(key.PublicKey), logger, params.HistoryStorageAddress, {0xc0}, {0xff}}
	slot := common.BigToHash(common.Big0)
	slot[31] = byte(r.Uint64N(block.NumberU64() + 2)) // the history contract has the parent's hash
	at := map[string]any{"blockHash": block.Hash()}
	method, args := "eth_getBalance", []any{accounts[r.IntN(len(accounts))], at}
	switch r.IntN(3) {
	case 0:
		method, args = "eth_getStorageAt", []any{params.HistoryStorageAddress, slot, at}
	case 1:
		method, args = "eth_getProof", []any{params.HistoryStorageAddress, []common.Hash{slot}, at}
	}
	encoded, err := json.Marshal(args)
	if err != nil {
		return false, err
	}
	var answers [2][]byte
	for i, methods := range c.methods {
		if answers[i], err = methods[method](t.Context(), encoded, nil); err != nil {
			return false, nil
		}
	}
	if !bytes.Equal(answers[0], answers[1]) {
		return false, fmt.Errorf("%s%s: %s with caches, %s without", method, encoded, answers[0], answers[1])
	}
	return true, nil
}

// A chain that caches its state answers as one that does not, while the head moves over a tree
// of blocks and blocks settle.
func TestCachedState(t *testing.T) {
	c, made := newCached(t), newBranches(t)
	var mu sync.Mutex
	blocks := []*types.Block{made.genesis}
	var asked, stopped atomic.Int64
	group, ctx := errgroup.WithContext(t.Context())
	for reader := range uint64(3) {
		group.Go(func() error {
			r := rand.New(rand.NewPCG(reader, 3))
			for stopped.Load() == 0 && ctx.Err() == nil {
				mu.Lock()
				block := blocks[r.IntN(len(blocks))]
				mu.Unlock()
				same, err := c.ask(t, r, block)
				if err != nil {
					return err
				}
				if same {
					asked.Add(1)
				}
			}
			return nil
		})
	}
	r := rand.New(rand.NewPCG(5, 5))
	head := made.genesis
	for range 60 {
		parent := head
		if r.IntN(3) == 0 {
			mu.Lock()
			parent = blocks[max(0, len(blocks)-1-r.IntN(4))]
			mu.Unlock()
		}
		block := made.block(parent, r.IntN(3))
		if !c.follow(t, block) {
			continue
		}
		head = block
		mu.Lock()
		blocks = append(blocks, block)
		mu.Unlock()
		for range 20 {
			if _, err := c.ask(t, r, block); err != nil {
				t.Error(err)
			}
		}
	}
	stopped.Store(1)
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	if asked.Load() == 0 || head.NumberU64() < 20 {
		t.Errorf("%d answers compared, head %d", asked.Load(), head.NumberU64())
	}
}

// follow adds a block to both chains and makes it the head. It returns false if its parent was
// left for good.
func (c *cached) follow(t *testing.T, block *types.Block) bool {
	t.Helper()
	for _, follower := range c.followers {
		if err := follower.Add(t.Context(), block); err != nil {
			return false
		}
		if err := follower.SetHead(t.Context(), block.Hash(), chain.Ref{}, chain.Ref{}); err != nil {
			return false
		}
	}
	return true
}
