package follow

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/beacon/engine"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// second is a second geth with the chain of the first one. It executes each block itself, and the test tells it
// over the Engine API which one is the head, as a consensus client does. So it has a block a little later than the
// first one, and drops it a little later.
type second struct {
	t     *testing.T
	first *node.Client
	geth  node.Geth
	url   string

	running node.DrivenGeth
	halt    func() // ends the driving, and waits until it has ended
	last    error  // why the last attempt to drive it failed; read after halt
}

// startSecond starts a second geth.
func startSecond(t *testing.T, u *upstream, genesis string) *second {
	t.Helper()
	bin, err := node.FindGeth()
	if err != nil {
		t.Fatal(err)
	}
	address, err := node.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := &second{t: t, first: u.client, geth: node.Geth{Bin: bin, Data: t.TempDir(), Scheme: node.HashScheme, Listen: address}}
	if err := s.geth.Init(t.Context(), genesis); err != nil {
		t.Fatal(err)
	}
	s.start()
	s.url = s.running.Public.URL
	t.Cleanup(func() {
		s.halt()
		s.running.Kill()
		if t.Failed() {
			t.Logf("the second geth was driven until %v, and said:\n%s", s.last, s.running.Output())
		}
	})
	return s
}

// start starts the process, at the same address each time.
func (s *second) start() {
	s.t.Helper()
	ctx := context.WithoutCancel(s.t.Context()) // which ends before the cleanups run
	var err error
	if s.running, err = s.geth.ServeEngine(ctx, 0); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var driving sync.WaitGroup
	driving.Go(func() { s.drive(ctx) })
	s.halt = func() {
		cancel()
		driving.Wait()
	}
}

// stop ends the process.
func (s *second) stop() {
	s.t.Helper()
	s.halt()
	if err := s.running.Stop(); err != nil {
		s.t.Fatal(err)
	}
}

// drive brings the second geth to the first one's head again and again. Attempts fail while the first one is
// being wound back.
func (s *second) drive(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.follow(ctx); err != nil && ctx.Err() == nil {
			s.last = err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// follow brings the second geth to the first one's head.
func (s *second) follow(ctx context.Context) error {
	var head hexutil.Uint64
	if err := s.first.Call(ctx, &head, "eth_blockNumber"); err != nil {
		return err
	}
	var missing []*types.Block // the head first
	target, err := hashAt(ctx, s.first, hexutil.Uint64(head))
	if err != nil {
		return err
	}
	for number := uint64(head); ; number-- {
		block, err := rawBlock(ctx, s.first, number)
		if err != nil {
			return err
		}
		if n := len(missing); n == 0 && block.Hash() != target || n > 0 && block.Hash() != missing[n-1].ParentHash() {
			return fmt.Errorf("block %d was dropped meanwhile", number)
		}
		own, err := hashAt(ctx, s.running.Public, hexutil.Uint64(number))
		if err != nil {
			return err
		}
		if own == block.Hash() {
			break
		}
		missing = append(missing, block)
	}
	if len(missing) > 0 {
		slices.Reverse(missing)
		if err := s.execute(ctx, missing); err != nil {
			return err
		}
	}
	return s.choose(ctx, target)
}

// execute has the second geth import blocks. The Engine API would want the access lists of blocks of Amsterdam,
// which the first geth does not give away.
func (s *second) execute(ctx context.Context, blocks []*types.Block) error {
	var encoded bytes.Buffer
	for _, block := range blocks {
		if err := rlp.Encode(&encoded, block); err != nil {
			return err
		}
	}
	file := filepath.Join(s.geth.Data, "chain.rlp")
	if err := os.WriteFile(file, encoded.Bytes(), 0o600); err != nil {
		return err
	}
	var imported bool
	return s.running.Public.Call(ctx, &imported, "admin_importChain", file)
}

// choose makes a block the head of the second geth. The same blocks are safe and final as in the first one.
func (s *second) choose(ctx context.Context, head common.Hash) error {
	choice := engine.ForkchoiceStateV1{HeadBlockHash: head}
	for tag, hash := range map[string]*common.Hash{"safe": &choice.SafeBlockHash, "finalized": &choice.FinalizedBlockHash} {
		var err error
		if *hash, err = hashAt(ctx, s.first, tag); err != nil {
			return err
		}
	}
	var response engine.ForkChoiceResponse
	if err := s.running.Engine.Call(ctx, &response, "engine_forkchoiceUpdatedV3", choice, nil); err != nil {
		return err
	}
	if status := response.PayloadStatus.Status; status != engine.VALID {
		return fmt.Errorf("the second geth finds the head %s %s", head, status)
	}
	return nil
}

func rawBlock(ctx context.Context, client *node.Client, number uint64) (*types.Block, error) {
	var raw hexutil.Bytes
	if err := client.Call(ctx, &raw, "debug_getRawBlock", hexutil.Uint64(number)); err != nil {
		return nil, err
	}
	block := new(types.Block)
	return block, rlp.DecodeBytes(raw, block)
}

// hashAt returns the hash of a client's block, zero if it has none.
func hashAt(ctx context.Context, client *node.Client, at any) (common.Hash, error) {
	var block *struct{ Hash common.Hash }
	err := client.Call(ctx, &block, "eth_getBlockByNumber", at, false)
	if none := (*node.Error)(nil); errors.As(err, &none) {
		return common.Hash{}, nil // a block with the tag, before there is one
	}
	if err != nil || block == nil {
		return common.Hash{}, err
	}
	return block.Hash, nil
}

// awaitHead returns when the second geth has the first one's head.
func (s *second) awaitHead(u *upstream) {
	s.t.Helper()
	await(s.t, "the second geth to have the first one's head", func() bool {
		return tagged(s.t, s.running.Public, "latest") == tagged(s.t, u.client, "latest")
	})
}
