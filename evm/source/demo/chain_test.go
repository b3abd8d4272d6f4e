package demo_test

import (
	"bytes"
	"context"
	"maps"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm/runtime"
	"github.com/ethereum/go-ethereum/params"

	"ashlar/evm/source/demo"
	"ashlar/evm/source/demo/reference"
)

const (
	chainBlocks = 300
	// chainHead is what anyone's block builder has to arrive at. It changes
	// whenever contracts, genesis or traffic change: on purpose only.
	chainHead = "0x1ebaee88311f4479f32d07502a5a841bd61a8c3a50c78abced277efc878dd09f"
)

// chain is the default network's first blocks, built once for all tests of it.
type chain struct {
	builder  *reference.Builder
	blocks   []reference.Block
	examples demo.Examples
}

func build(t *testing.T, config demo.Config, n int) chain {
	t.Helper()
	network, err := demo.New(config)
	if err != nil {
		t.Fatal(err)
	}
	var c chain
	if c.examples, err = network.Examples(); err != nil {
		t.Fatal(err)
	}
	if c.builder, err = reference.New(network); err != nil {
		t.Fatal(err)
	}
	err = c.builder.Build(context.Background(), n, func(b reference.Block) error {
		c.blocks = append(c.blocks, b)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// The chain maker refuses transactions that are not valid; what is left to
// check is that everything wanted is in there.
func TestDefaultChain(t *testing.T) {
	c := build(t, demo.Default(), chainBlocks)
	t.Run("head", func(t *testing.T) {
		if got := c.builder.Head().Hash().Hex(); got != chainHead {
			t.Errorf("head of %d blocks is %s, expected %s", chainBlocks, got, chainHead)
		}
	})
	t.Run("outcomes", c.testOutcomes)
	t.Run("transactions", c.testTransactions)
	t.Run("blocks", c.testBlocks)
	t.Run("fees", c.testFees)
	t.Run("logs", c.testLogs)
	t.Run("requests", c.testRequests)
	t.Run("examples", c.testExamples)
}

func TestChainIsDeterministic(t *testing.T) {
	a, b := build(t, demo.Dense(40), 12), build(t, demo.Dense(40), 12)
	if a.builder.Head().Hash() != b.builder.Head().Hash() {
		t.Errorf("the same network twice has heads %s and %s", a.builder.Head().Hash(), b.builder.Head().Hash())
	}
}

// Other configurations are as valid as the default, the smallest one too.
func TestOtherConfigurations(t *testing.T) {
	least := demo.Config{ChainID: 1, Seed: 5, Senders: 4, Holders: 1, Tokens: 2, MeanTransactions: 1, GasLimit: 8_000_000}
	crowded := demo.Default()
	crowded.MeanTransactions = 200 // more than fit
	for name, config := range map[string]demo.Config{"least": least, "crowded": crowded, "dense": demo.Dense(60)} {
		t.Run(name, func(t *testing.T) {
			c := build(t, config, 15)
			c.testOutcomes(t)
		})
	}
}

func (c chain) testOutcomes(t *testing.T) {
	for _, b := range c.blocks {
		if len(b.Contents.Intents) != len(b.Transactions()) {
			t.Fatalf("block %d has %d intents for %d transactions", b.NumberU64(), len(b.Contents.Intents), len(b.Transactions()))
		}
		for i, receipt := range b.Receipts {
			intent := b.Contents.Intents[i]
			if failed := receipt.Status == types.ReceiptStatusFailed; failed != intent.Fails {
				t.Errorf("block %d, transaction %d (%s): failed is %t, expected %t; %d gas of %d used",
					b.NumberU64(), i, intent.Action, failed, intent.Fails, receipt.GasUsed, b.Transactions()[i].Gas())
			}
		}
	}
}

func (c chain) testTransactions(t *testing.T) {
	kinds, actions, total, failed := map[string]int{}, map[string]int{}, 0, 0
	for _, b := range c.blocks {
		for i, tx := range b.Transactions() {
			total++
			kinds[kind(tx)]++
			actions[b.Contents.Intents[i].Action]++
			if b.Contents.Intents[i].Fails {
				failed++
			}
		}
	}
	t.Logf("%d transactions in %d blocks, %d of them fail: %v, %v", total, chainBlocks, failed, kinds, actions)
	for _, want := range []string{"legacy", "legacy without chain id", "access list", "dynamic fee", "blob", "set code"} {
		if kinds[want] < 50 {
			t.Errorf("%d transactions are of the kind %q, expected at least 50", kinds[want], want)
		}
	}
	for _, want := range demo.ActionNames() {
		if actions[want] == 0 {
			t.Errorf("no transaction is for the action %q", want)
		}
	}
	if mean := total / chainBlocks; mean < 20 || mean > 30 {
		t.Errorf("blocks have %d transactions on average, expected about 25", mean)
	}
}

func kind(tx *types.Transaction) string {
	switch tx.Type() {
	case types.LegacyTxType:
		if tx.Protected() {
			return "legacy"
		}
		return "legacy without chain id"
	case types.AccessListTxType:
		return "access list"
	case types.DynamicFeeTxType:
		return "dynamic fee"
	case types.BlobTxType:
		return "blob"
	case types.SetCodeTxType:
		return "set code"
	}
	return "unknown"
}

func (c chain) testBlocks(t *testing.T) {
	var empty, small, large, withdrawals int
	var nextWithdrawal uint64
	for _, b := range c.blocks {
		switch n := len(b.Transactions()); {
		case n == 0:
			empty++
		case n <= 8:
			small++
		case n >= 45:
			large++
		}
		if got, want := b.Time(), demo.Timestamp(b.NumberU64()); got != want {
			t.Errorf("time of block %d is %d, expected %d", b.NumberU64(), got, want)
		}
		if b.MixDigest() != b.Contents.PrevRandao || *b.BeaconRoot() != b.Contents.ParentBeaconRoot || b.Coinbase() != b.Contents.FeeRecipient {
			t.Errorf("block %d has not the header values that it was given", b.NumberU64())
		}
		withdrawals += len(b.Withdrawals())
		for _, w := range b.Withdrawals() {
			if w.Index != nextWithdrawal {
				t.Errorf("block %d has withdrawal %d, expected %d", b.NumberU64(), w.Index, nextWithdrawal)
			}
			nextWithdrawal++
		}
	}
	t.Logf("%d empty, %d small, %d large blocks; %d withdrawals", empty, small, large, withdrawals)
	if empty < 5 || small < 30 || large < 10 || withdrawals < 100 {
		t.Errorf("%d empty, %d small and %d large blocks and %d withdrawals, expected at least 5, 30, 10 and 100", empty, small, large, withdrawals)
	}
}

// The base fee stays near 1 gwei and moves; blobs cost more as time goes on.
func (c chain) testFees(t *testing.T) {
	low, high := big.NewInt(params.GWei/2), big.NewInt(params.GWei*2)
	fees := map[uint64]bool{}
	var blobs uint64
	for _, b := range c.blocks {
		if b.BaseFee().Cmp(low) < 0 || b.BaseFee().Cmp(high) > 0 {
			t.Errorf("base fee of block %d is %d, expected %d to %d", b.NumberU64(), b.BaseFee(), low, high)
		}
		fees[b.BaseFee().Uint64()] = true
		blobs += *b.BlobGasUsed() / params.BlobTxBlobGasPerBlob
	}
	if len(fees) < chainBlocks/2 {
		t.Errorf("%d different base fees in %d blocks, expected at least half as many", len(fees), chainBlocks)
	}
	if excess := *c.builder.Head().ExcessBlobGas(); blobs < 100 || excess == 0 {
		t.Errorf("%d blobs and an excess of %d at the end, expected at least 100 and more than 0", blobs, excess)
	}
}

func (c chain) testLogs(t *testing.T) {
	byTopics, signatures := map[int]int{}, map[common.Hash]int{}
	most, empty := 0, 0
	for _, b := range c.blocks {
		for _, receipt := range b.Receipts {
			most = max(most, len(receipt.Logs))
			for _, log := range receipt.Logs {
				byTopics[len(log.Topics)]++
				if len(log.Data) == 0 {
					empty++
				}
				if len(log.Topics) > 0 {
					signatures[log.Topics[0]]++
				}
			}
		}
	}
	t.Logf("logs by their count of topics: %v; %d different first topics; %d without data", byTopics, len(signatures), empty)
	for topics := range 5 {
		if byTopics[topics] < 30 {
			t.Errorf("%d logs have %d topics, expected at least 30", byTopics[topics], topics)
		}
	}
	if most < 20 || empty < 100 {
		t.Errorf("at most %d logs in a transaction and %d logs without data, expected at least 20 and 100", most, empty)
	}
	if got := signatures[c.examples.TransferTopic]; got < 2000 {
		t.Errorf("%d transfers, expected at least 2000", got)
	}
	if got := signatures[c.examples.SwapTopic]; got < 300 {
		t.Errorf("%d swaps, expected at least 300", got)
	}
	rare := slices.Sorted(maps.Values(signatures))
	if rare[0] != 1 {
		t.Errorf("the rarest first topic occurs %d times, expected once", rare[0])
	}
}

// Deposits are in their blocks' receipts; all three kinds of request change the
// requests hash, which the genesis block's successor, without any, does not have.
func (c chain) testRequests(t *testing.T) {
	to := map[common.Address]int{}
	none := types.CalcRequestsHash(nil)
	for _, b := range c.blocks {
		requests := 0
		for i, tx := range b.Transactions() {
			if b.Contents.Intents[i].Action == "validator request" {
				to[*tx.To()]++
				requests++
			}
		}
		if hash := *b.RequestsHash(); (hash == none) != (requests == 0) {
			t.Errorf("block %d has %d requests and the requests hash %s", b.NumberU64(), requests, hash)
		}
	}
	if to[params.WithdrawalQueueAddress] == 0 || to[params.ConsolidationQueueAddress] == 0 || len(to) != 3 {
		t.Errorf("requests go to %v, expected withdrawals, consolidations and deposits", to)
	}
}

func (c chain) testExamples(t *testing.T) {
	state, err := c.builder.State()
	if err != nil {
		t.Fatal(err)
	}
	e := c.examples
	for name, at := range map[string]common.Address{"token": e.Token, "collectible": e.Collectible, "pool": e.Pool, "ledger": e.Ledger} {
		if state.GetCodeSize(at) == 0 {
			t.Errorf("the %s %s has no code", name, at)
		}
	}
	if state.GetNonce(e.Sender) == 0 {
		t.Error("the sender has sent nothing")
	}
	call := func(to common.Address, input []byte) []byte {
		out, _, err := runtime.Call(to, input, &runtime.Config{State: state, GasLimit: 10_000_000})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	slot := state.GetState(e.Token, e.HolderSlot)
	if got := call(e.Token, e.BalanceOfHolder); slot == (common.Hash{}) || !bytes.Equal(got, slot[:]) {
		t.Errorf("the holder's balance is %x by call and %x by slot, expected one number that is not 0", got, slot)
	}
	if sum := call(e.Ledger, e.LedgerSum); bytes.Equal(sum, make([]byte, 32)) {
		t.Error("the ledger sums to 0")
	}
	for _, b := range c.blocks[:3] {
		for i, intent := range b.Contents.Intents {
			if b.NumberU64() == 3 && intent.Action == "setup" {
				t.Errorf("transaction %d of block 3 still sets the network up", i)
			}
		}
	}
}
