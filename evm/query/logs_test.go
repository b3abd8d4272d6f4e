package query

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"ashlar/chain"
	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/history/rows"
	"ashlar/internal/raced"
	"ashlar/kv"
	"ashlar/kv/pebble"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
)

// logChain is a chain of blocks with random logs only.
type logChain struct {
	*View
	random *rand.Rand
	store  kv.Store
	logs   []placedLog // in the order of the chain
}

// placedLog is an expected log.
type placedLog struct {
	address     common.Address
	topics      []common.Hash
	data        []byte
	block       uint64
	hash        common.Hash // of the transaction
	transaction int
	index       uint64
}

func (l placedLog) String() string {
	return fmt.Sprintf("block %d, transaction %d, log %d", l.block, l.transaction, l.index)
}

// newLogChain creates a chain with few addresses and topics, some of them rare.
func newLogChain(t testing.TB, seed uint64, blocks int) *logChain {
	t.Helper()
	return newLogChainOf(t, seed, blocks, "")
}

// newLogChainOf creates a chain in an archive of a format, or of the newest one if it is empty.
func newLogChainOf(t testing.TB, seed uint64, blocks int, format string) *logChain {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "logs", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a, err := archive.Create(t.Context(), store, &core.Genesis{Config: params.TestChainConfig, Difficulty: new(big.Int)})
	if err == nil && format != "" {
		batch := store.NewBatch()
		rows.SetFormat(batch, format)
		if err = store.Write(t.Context(), batch); err == nil {
			a, err = archive.Open(t.Context(), store)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	c := &logChain{random: rand.New(rand.NewPCG(seed, 2)), store: store}
	var deltas []*evm.Delta
	var parent common.Hash
	for number := range blocks {
		delta := c.block(uint64(number), parent)
		parent = delta.Block.Hash()
		deltas = append(deltas, delta)
	}
	if err := a.Append(t.Context(), deltas...); err != nil {
		t.Fatal(err)
	}
	if c.View, err = NewChain(a, nil, nil).View(); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *logChain) block(number uint64, parent common.Hash) *evm.Delta {
	delta := &evm.Delta{}
	var transactions types.Transactions
	var index uint64
	for i := range c.random.IntN(4) {
		transaction := types.NewTx(&types.LegacyTx{Nonce: number<<8 | uint64(i), GasPrice: new(big.Int), Value: new(big.Int), V: big.NewInt(27), R: big.NewInt(1), S: big.NewInt(1)})
		receipt := &types.Receipt{Status: 1}
		for range c.random.IntN(4) {
			log := placedLog{address: c.address(), data: []byte{byte(index)}, block: number, hash: transaction.Hash(), transaction: i, index: index}
			for range c.random.IntN(5) {
				log.topics = append(log.topics, c.topic())
			}
			receipt.Logs = append(receipt.Logs, &types.Log{Address: log.address, Topics: log.topics, Data: log.data})
			c.logs = append(c.logs, log)
			index++
		}
		transactions = append(transactions, transaction)
		delta.Senders = append(delta.Senders, common.Address{})
		delta.Receipts = append(delta.Receipts, receipt)
	}
	header := &types.Header{Number: new(big.Int).SetUint64(number), ParentHash: parent, Difficulty: new(big.Int)}
	for _, receipt := range delta.Receipts {
		bloom := types.CreateBloom(receipt)
		for i := range bloom {
			header.Bloom[i] |= bloom[i]
		}
	}
	delta.Block = types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: transactions})
	return delta
}

// address returns 0 with probability 1/2, 1 with 1/4 and so on.
func (c *logChain) address() (a common.Address) { a[0] = byte(c.rare()); return a }

func (c *logChain) topic() (h common.Hash) { h[0] = byte(c.rare()); return h }

func (c *logChain) rare() (n int) {
	for ; n < 12 && c.random.IntN(2) == 0; n++ {
	}
	return n
}

// filter returns a random filter.
func (c *logChain) filter() *Filter {
	f := &Filter{From: c.random.Uint64N(c.head.Number + 1)}
	f.To = f.From + c.random.Uint64N(c.head.Number-f.From+1)
	if c.random.IntN(3) == 0 {
		f.From, f.To = 0, c.head.Number
	}
	for range c.random.IntN(3) * c.random.IntN(12) {
		f.Addresses = append(f.Addresses, c.address())
	}
	for range c.random.IntN(5) {
		var allowed []common.Hash
		for range c.random.IntN(2) * (1 + c.random.IntN(6)) {
			allowed = append(allowed, c.topic())
		}
		f.Topics = append(f.Topics, allowed)
	}
	return f
}

// matching searches all logs linearly.
func (c *logChain) matching(f *Filter) (found []placedLog) {
	for _, log := range c.logs {
		if log.block < f.From || log.block > f.To || len(f.Addresses) > 0 && !slices.Contains(f.Addresses, log.address) || len(log.topics) < len(f.Topics) {
			continue
		}
		if topicsMatch(f.Topics, log.topics) {
			found = append(found, log)
		}
	}
	return found
}

func topicsMatch(positions [][]common.Hash, topics []common.Hash) bool {
	for i, allowed := range positions {
		if len(allowed) > 0 && !slices.Contains(allowed, topics[i]) {
			return false
		}
	}
	return true
}

// placedOf returns a copy of a log that is visited.
func placedOf(log *Log) (placedLog, error) {
	hash, err := log.TransactionHash()
	l := placedLog{
		address: log.Address, data: slices.Clone(log.Data), block: log.Block.Number,
		hash: hash, transaction: log.Transaction, index: log.Index,
	}
	for topics := log.Topics; len(topics) > 0; topics = topics[common.HashLength:] {
		l.topics = append(l.topics, common.Hash(topics[:common.HashLength]))
	}
	return l, err
}

// ask collects the logs that Logs visits.
func (c *logChain) ask(ctx context.Context, f *Filter, limit int) (found []placedLog, err error) {
	err = c.Logs(ctx, f, limit, func(log *Log) error {
		l, err := placedOf(log)
		if err != nil {
			return err
		}
		found = append(found, l)
		return nil
	})
	return found, err
}

func sameLogs(a, b []placedLog) bool {
	return slices.EqualFunc(a, b, func(a, b placedLog) bool {
		return a.String() == b.String() && a.hash == b.hash && a.address == b.address && slices.Equal(a.topics, b.topics) && slices.Equal(a.data, b.data)
	})
}

// TestLogsAreThoseThatMatch compares Logs with a linear search, on a chain that is longer than a
// partition of rows.
func TestLogsAreThoseThatMatch(t *testing.T) {
	raced.Skip(t)
	for _, format := range []string{"", "ashlar-evm-3"} {
		c := newLogChainOf(t, 1, 1500, format)
		for range 500 {
			f := c.filter()
			want := c.matching(f)
			got, err := c.ask(t.Context(), f, len(want))
			if err != nil {
				t.Fatalf("%q, %+v: %v", format, f, err)
			}
			if !sameLogs(got, want) {
				t.Fatalf("%q, %+v:\ngot  %d %v\nwant %d %v", format, f, len(got), got, len(want), want)
			}
		}
	}
}

// TestLogsNeedNoBody: the hash of a log's transaction is beside its receipt, except in archives
// of older versions.
func TestLogsNeedNoBody(t *testing.T) {
	for format, stored := range map[string]bool{"": true, "ashlar-evm-3": false} {
		c := newLogChainOf(t, 4, 40, format)
		logs := 0
		err := c.Logs(t.Context(), &Filter{To: c.head.Number}, len(c.logs), func(log *Log) error {
			logs++
			if (log.StoredHash() != nil) != stored {
				t.Errorf("%q: log %d of block %d has the hash %x", format, log.Index, log.Block.Number, log.StoredHash())
			}
			return nil
		})
		if err != nil || logs == 0 {
			t.Errorf("%q: %d logs, %v", format, logs, err)
		}
	}
}

// TestTooManyLogs: the range in the error is the longest one from the first block that does not
// exceed the limit.
func TestTooManyLogs(t *testing.T) {
	raced.Skip(t)
	c := newLogChain(t, 2, 400)
	over, alone := 0, 0
	for range 600 {
		f := c.filter()
		want := c.matching(f)
		if len(want) == 0 {
			continue
		}
		limit := c.random.IntN(len(want))
		got, err := c.ask(t.Context(), f, limit)
		var tooMany *chain.TooManyLogs
		if !errors.As(err, &tooMany) || len(got) > 0 {
			t.Fatalf("%+v: %d logs, %v, want TooManyLogs at %d of %d", f, len(got), err, limit, len(want))
		}
		first := want[limit].block // the block of the first log over the limit
		if tooMany.Limit != limit || tooMany.From != f.From || tooMany.Fits != (first > f.From) {
			t.Fatalf("%+v: %+v with %d allowed and block %d over", f, tooMany, limit, first)
		}
		if !tooMany.Fits {
			alone++
			continue
		}
		over++
		if tooMany.To != first-1 {
			t.Fatalf("%+v: up to %d, want %d", f, tooMany.To, first-1)
		}
		narrow := *f
		narrow.To = tooMany.To
		if got, err := c.ask(t.Context(), &narrow, limit); err != nil || !sameLogs(got, c.matching(&narrow)) {
			t.Fatalf("%+v: the range that is to fit: %v", narrow, err)
		}
	}
	if over == 0 || alone == 0 {
		t.Fatalf("%d filters with a range that fits and %d without", over, alone)
	}
}

// TestThousandsOfTerms: a union of more terms than a store can have cursors.
func TestThousandsOfTerms(t *testing.T) {
	c := newLogChain(t, 3, 300)
	f := &Filter{To: c.head.Number}
	for i := range 5000 {
		f.Addresses = append(f.Addresses, common.Address{byte(i), byte(i >> 8), 7})
	}
	f.Addresses = append(f.Addresses, common.Address{3}, common.Address{5})
	f.Topics = [][]common.Hash{{{0}, {1}}}
	got, err := c.ask(t.Context(), f, 1000)
	if want := c.matching(f); err != nil || len(want) == 0 || !sameLogs(got, want) {
		t.Fatalf("%d logs, %v, want %d", len(got), err, len(want))
	}
}

func TestLogsEnd(t *testing.T) {
	c := newLogChain(t, 5, 50)
	all := &Filter{To: c.head.Number}
	stop := errors.New("enough")
	if err := c.Logs(t.Context(), all, len(c.logs), func(*Log) error { return stop }); err != stop {
		t.Errorf("an error of the visitor: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, f := range []*Filter{all, {To: c.head.Number, Addresses: []common.Address{{0}}}, {To: c.head.Number, Topics: [][]common.Hash{{{0}, {1}}}}} {
		if _, err := c.ask(ctx, f, 1000); !errors.Is(err, context.Canceled) {
			t.Errorf("after the context's end: %v", err)
		}
	}
	if _, err := c.ask(t.Context(), &Filter{To: c.head.Number + 1}, 1); !errors.Is(err, ErrUnknownBlock) {
		t.Errorf("above the head: %v", err)
	}
}
