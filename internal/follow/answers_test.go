package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ashlar/internal/node"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/trie"
)

// answers are the answers to a client that sends requests without pause. They are checked afterwards,
// when all blocks are known.
type answers struct {
	heads  []place
	counts []counted
	logs   [][]logged
	failed []error
	gone   int // requests for blocks that had been reorganized away
	// forwarded says that nodes answer, which may lose a block before another is the head.
	forwarded bool
}

type place struct {
	number uint64
	hash   common.Hash
}

// counted is the counter as of a block.
type counted struct {
	block common.Hash
	count common.Hash
}

type logged struct {
	place
	topic common.Hash
}

func (a *answers) String() string {
	return fmt.Sprintf("requests for %d heads, %d slots and %d ranges of logs, and %d for blocks that were dropped", len(a.heads), len(a.counts), len(a.logs), a.gone)
}

// ask sends requests until ctx is done.
func (a *answers) ask(ctx context.Context, client *node.Client) *answers {
	random := rand.New(rand.NewPCG(1, 2))
	for ctx.Err() == nil {
		var err error
		switch random.IntN(3) {
		case 0:
			err = a.askHead(ctx, client)
		case 1:
			err = a.askCount(ctx, client, random)
		case 2:
			err = a.askLogs(ctx, client, random)
		}
		if err != nil && ctx.Err() == nil {
			a.failed = append(a.failed, err)
		}
	}
	return a
}

// askHead requests the newest block, whose transactions must match its header, and its receipts.
func (a *answers) askHead(ctx context.Context, client *node.Client) error {
	var raw json.RawMessage
	if err := client.Call(ctx, &raw, "eth_getBlockByNumber", "latest", true); err != nil {
		if a.forwarded && a.isGone(err) {
			return nil
		}
		return err
	}
	var header types.Header
	var body struct {
		Hash         common.Hash
		Transactions types.Transactions
	}
	if err := errors.Join(json.Unmarshal(raw, &header), json.Unmarshal(raw, &body)); err != nil {
		return err
	}
	if header.Hash() != body.Hash || types.DeriveSha(body.Transactions, trie.NewStackTrie(nil)) != header.TxHash {
		return fmt.Errorf("block %d (%#x): the body does not match the header", header.Number, body.Hash)
	}
	a.heads = append(a.heads, place{header.Number.Uint64(), body.Hash})
	var receipts types.Receipts
	err := client.Call(ctx, &receipts, "eth_getBlockReceipts", map[string]any{"blockHash": body.Hash})
	if a.isGone(err) {
		return nil
	}
	if err == nil && types.DeriveSha(receipts, trie.NewStackTrie(nil)) != header.ReceiptHash {
		err = fmt.Errorf("block %d (%#x): the receipts are of another block", header.Number, body.Hash)
	}
	return err
}

// isGone reports whether the error is that the service no longer has a block: its branch was dropped, and
// another one was settled. Requests must not fail for any other reason.
func (a *answers) isGone(err error) bool {
	var answer *node.Error
	if !errors.As(err, &answer) {
		return false
	}
	says := func(text string) bool { return strings.Contains(answer.Message, text) }
	if !says("not found") && !says("range") && !(a.forwarded && (says("pruned history") || says("unknown block") || says("can answer"))) {
		return false
	}
	a.gone++
	return true
}

// askCount requests the counter as of a block that was recently the newest.
func (a *answers) askCount(ctx context.Context, client *node.Client, random *rand.Rand) error {
	if len(a.heads) == 0 {
		return nil
	}
	at := a.heads[len(a.heads)-1-random.IntN(min(len(a.heads), 20))]
	var count common.Hash
	err := client.Call(ctx, &count, "eth_getStorageAt", counter, "0x0", map[string]any{"blockHash": at.hash})
	if a.isGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	a.counts = append(a.counts, counted{at.hash, count})
	return nil
}

// askLogs requests the logs of the newest blocks.
func (a *answers) askLogs(ctx context.Context, client *node.Client, random *rand.Rand) error {
	if len(a.heads) == 0 {
		return nil
	}
	last := a.heads[len(a.heads)-1].number
	from := last - min(last, uint64(random.IntN(15)))
	var logs []types.Log
	if err := client.Call(ctx, &logs, "eth_getLogs", map[string]any{"fromBlock": hexutil.Uint64(from), "toBlock": "latest", "address": counter}); err != nil {
		if a.isGone(err) { // the head has moved back, and the range begins above it
			return nil
		}
		return err
	}
	var found []logged
	for _, log := range logs {
		found = append(found, logged{place{log.BlockNumber, log.BlockHash}, log.Topics[0]})
	}
	a.logs = append(a.logs, found)
	return nil
}

// check compares the answers with all blocks that were made.
func (a *answers) check(t *testing.T, blocks map[common.Hash]made) {
	t.Helper()
	for _, err := range a.failed {
		t.Error(err)
	}
	for _, head := range a.heads {
		if block, ok := blocks[head.hash]; !ok || block.number != head.number {
			t.Errorf("block %d (%#x) was returned but never made", head.number, head.hash)
		}
	}
	for _, c := range a.counts {
		if want := blocks[c.block].count; c.count != want {
			t.Errorf("the counter was %#x as of %#x, expected %#x", c.count, c.block, want)
		}
	}
	for _, logs := range a.logs {
		checkLogs(t, logs, blocks)
	}
	if len(a.heads) == 0 || len(a.counts) == 0 || len(a.logs) == 0 {
		t.Errorf("too few requests: %s", a)
	}
}

// checkLogs checks that logs are of a single branch and complete: each has the next number.
func checkLogs(t *testing.T, logs []logged, blocks map[common.Hash]made) {
	t.Helper()
	for i := len(logs) - 1; i > 0; i-- {
		upper, lower := logs[i], logs[i-1]
		hash := upper.hash
		for blocks[hash].number > lower.number {
			hash = blocks[hash].parent
		}
		if hash != lower.hash {
			t.Errorf("logs of blocks %d (%#x) and %d (%#x), of two branches, are in one answer", lower.number, lower.hash, upper.number, upper.hash)
			return
		}
		if next := lower.topic.Big().Uint64() + 1; upper.topic.Big().Uint64() != next {
			t.Errorf("log %d comes after log %d", upper.topic.Big(), lower.topic.Big())
		}
	}
}
