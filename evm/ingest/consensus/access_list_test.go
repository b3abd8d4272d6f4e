package consensus_test

import (
	"bytes"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	"ashlar/evm/ingest"
	"ashlar/evm/ingest/consensus"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/source/engine"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// TestPayloadsWithAccessLists sends the blocks of a chain that enters Amsterdam, and reads
// back their bodies.
func TestPayloadsWithAccessLists(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	f := ingesttest.NewFollowerOf(t, genesis, ingest.DefaultDepths())
	c := consensus.New(f.Follower, nil, slog.New(slog.DiscardHandler))
	for _, block := range blocks {
		status, err := c.NewPayload(t.Context(), block)
		if err != nil || status.Verdict != engine.Valid {
			t.Fatalf("block %d: %+v, %v", block.NumberU64(), status, err)
		}
	}
	const amsterdam = ingesttest.CrossingBlocks - ingesttest.CrossingFork + 1
	if runtime.GOMAXPROCS(0) > 1 {
		if _, got := f.Executor.ListedBlocks(); got != amsterdam {
			t.Errorf("%d blocks ran in parallel, want all %d of Amsterdam", got, amsterdam)
		}
	}
	head := blocks[len(blocks)-2] // the last block stays off the chain
	if status, err := c.UpdateForkchoice(t.Context(), engine.Forkchoice{Head: head.Hash()}); err != nil || status.Verdict != engine.Valid {
		t.Fatalf("forkchoice: %+v, %v", status, err)
	}
	for i, block := range blocks {
		byHash, err := c.Body(t.Context(), block.Hash())
		checkBody(t, byHash, err, block)
		byNumber, above, err := c.BodyAt(t.Context(), block.NumberU64())
		if above != (i == len(blocks)-1) {
			t.Errorf("body %d is said to be above the head: %t", i, above)
		}
		if above {
			if byNumber != nil || err != nil {
				t.Errorf("body above the head: %+v, %v", byNumber, err)
			}
			continue
		}
		checkBody(t, byNumber, err, block)
	}
	if body, err := c.Body(t.Context(), common.Hash{1}); body != nil || err != nil {
		t.Errorf("body of an unknown block: %+v, %v", body, err)
	}
}

func checkBody(t *testing.T, body *engine.Body, err error, block *types.Block) {
	t.Helper()
	if err != nil || body == nil {
		t.Fatalf("body of block %d: %+v, %v", block.NumberU64(), body, err)
	}
	var list []byte
	if block.AccessList() != nil {
		if list, err = rlp.EncodeToBytes(block.AccessList()); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(body.AccessList, list) || (body.AccessList == nil) != (list == nil) {
		t.Errorf("block %d: access list %x, want %x", block.NumberU64(), body.AccessList, list)
	}
	if len(body.Transactions) != len(block.Transactions()) || len(body.Withdrawals) != len(block.Withdrawals()) {
		t.Errorf("block %d: a body with %d transactions and %d withdrawals", block.NumberU64(), len(body.Transactions), len(body.Withdrawals))
	}
}

// TestPayloadWithWrongAccessList sends a block whose access list has a balance that is off
// by 1, under a matching header.
func TestPayloadWithWrongAccessList(t *testing.T) {
	genesis, blocks := ingesttest.Crossing(t)
	f := ingesttest.NewFollowerOf(t, genesis, ingest.DefaultDepths())
	c := consensus.New(f.Follower, nil, slog.New(slog.DiscardHandler))
	last := blocks[ingesttest.CrossingFork] // the second block of Amsterdam
	for _, block := range blocks[:ingesttest.CrossingFork] {
		if status, err := c.NewPayload(t.Context(), block); err != nil || status.Verdict != engine.Valid {
			t.Fatalf("block %d: %+v, %v", block.NumberU64(), status, err)
		}
	}
	list := last.AccessList().Copy()
	for i := range *list {
		if changes := (*list)[i].BalanceChanges; len(changes) > 0 {
			changes[0].PostBalance.AddUint64(changes[0].PostBalance, 1)
			break
		}
	}
	header, hash := types.CopyHeader(last.Header()), list.Hash()
	header.BlockAccessListHash = &hash
	wrong := types.NewBlockWithHeader(header).WithBody(*last.Body()).WithAccessListUnsafe(list)
	status, err := c.NewPayload(t.Context(), wrong)
	if err != nil || status.Verdict != engine.Invalid || !strings.Contains(status.Why, "access list") || !strings.Contains(status.Why, "balance changes of account") ||
		status.LatestValid == nil || *status.LatestValid != last.ParentHash() {
		t.Errorf("got %+v, %v", status, err)
	}
}
