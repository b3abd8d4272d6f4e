// Command start measures the time, processor time, memory and disk that a network needs to
// begin with a large state. The state is generated: accounts, of which one has half of the
// slots and the others share the rest. With -snapshot it also makes a snapshot of the network,
// in DIR-snapshot, and begins another network with it.
//
//	go run ./bench/start -accounts 1000000 -slots 10000000 -data DIR
package main

import (
	"context"
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math/big"

	"ashlar/app/store"
	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/ingest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/params"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/holiman/uint256"
)

const network = "start"

func main() {
	accounts := flag.Uint64("accounts", 1_000_000, "accounts; every tenth has slots")
	slots := flag.Uint64("slots", 10_000_000, "slots of all accounts together")
	snapshots := flag.Bool("snapshot", false, "measure a snapshot of the state, too")
	cache := flag.Int64("cache", 384, "MiB of cache of each store")
	data := flag.String("data", "", "data directory to make")
	flag.Parse()
	if *data == "" || flag.NArg() > 0 || *accounts < 20 || *slots < *accounts {
		log.Fatal("start: invalid flags (want -data DIR, at least 20 accounts and as many slots)")
	}
	m := measurement{dir: store.Dir(*data), cacheBytes: *cache << 20, snapshots: *snapshots}
	if err := m.run(context.Background(), &generated{accounts: *accounts, slots: *slots}); err != nil {
		log.Fatal(err)
	}
}

// A measurement makes its networks in a directory.
type measurement struct {
	dir        store.Dir
	cacheBytes int64
	snapshots  bool
}

func (m *measurement) run(ctx context.Context, g *generated) error {
	genesis := &core.Genesis{Config: params.TestChainConfig, Difficulty: big.NewInt(1), GasLimit: 30_000_000, BaseFee: big.NewInt(1)}
	generating := beginStep()
	if err := g.makeHead(ctx, genesis); err != nil {
		return err
	}
	fmt.Println("roots computed:", generating)
	if err := m.dir.Check(); err != nil {
		return err
	}
	db, err := m.open(network)
	if err != nil {
		return err
	}
	executor, err := execute.New(genesis.Config)
	if err != nil {
		return err
	}
	writing := beginStep()
	start, err := archive.Begin(ctx, db, genesis, archive.Beginning{Ref: chain.Ref{Number: 1, Hash: g.head.Hash()}})
	if err != nil {
		return err
	}
	progress := new(ingest.StartProgress)
	a, err := ingest.Start(ctx, ingest.StartConfig{
		Start: start, Executor: executor, Genesis: genesis, Source: g, TotalDifficulty: big.NewInt(2), Progress: progress,
	})
	if err != nil {
		return err
	}
	fmt.Printf("%d accounts, %d slots written: %v\n", progress.Accounts.Load(), progress.Slots.Load(), writing)
	compacting := beginStep()
	if err := db.Compact(ctx); err != nil {
		return err
	}
	disk, err := m.dir.Bytes(network)
	if err != nil {
		return err
	}
	fmt.Printf("compacted to %d MiB: %v\n", disk>>20, compacting)
	if m.snapshots {
		if err := m.runSnapshot(ctx, genesis, a); err != nil {
			return err
		}
	}
	return db.Close()
}

// generated is a state that is computed item by item. It implements [ingest.StateSource].
type generated struct {
	accounts, slots uint64
	head            *types.Header
	roots           map[uint64]common.Hash // of storage tries, by the number of slots
}

// key returns the i-th of n keys in ascending order.
func key(i, n uint64) (k common.Hash) {
	binary.BigEndian.PutUint64(k[:], i*(^uint64(0)/n)+1)
	mixed := (i + 1) * 0x9e3779b97f4a7c15 // no two trie nodes alike
	for at := 8; at < len(k); at += 8 {
		mixed ^= mixed >> 29
		mixed *= 0xbf58476d1ce4e5b9
		binary.BigEndian.PutUint64(k[at:], mixed)
	}
	return k
}

// slotsOf returns the number of slots of the i-th account.
func (g *generated) slotsOf(i uint64) uint64 {
	switch {
	case i == g.accounts/2:
		return g.slots - g.slots/2/(g.accounts/10)*(g.accounts/10)
	case i%10 == 1:
		return g.slots / 2 / (g.accounts / 10)
	}
	return 0
}

func (g *generated) account(i uint64) *types.StateAccount {
	account := types.NewEmptyStateAccount()
	account.Nonce, account.Balance = i%1000, uint256.NewInt(i*1e9+1)
	if n := g.slotsOf(i); n > 0 {
		account.Root = g.roots[n]
	}
	return account
}

// makeHead computes the roots, and the header that names them.
func (g *generated) makeHead(ctx context.Context, genesis *core.Genesis) error {
	g.roots = make(map[uint64]common.Hash)
	for i := range g.accounts {
		n := g.slotsOf(i)
		if _, known := g.roots[n]; known || n == 0 {
			continue
		}
		tries := trie.NewStackTrie(nil)
		if err := g.eachSlot(n, func(slot common.Hash, value []byte) error { return tries.Update(slot[:], value) }); err != nil {
			return err
		}
		g.roots[n] = tries.Hash()
	}
	tries := trie.NewStackTrie(nil)
	err := g.Accounts(ctx, func(address common.Hash, account *types.StateAccount) error {
		value, err := rlp.EncodeToBytes(account)
		if err != nil {
			return err
		}
		return tries.Update(address[:], value)
	})
	g.head = &types.Header{
		Number: big.NewInt(1), ParentHash: genesis.ToBlock().Hash(), Root: tries.Hash(), Difficulty: big.NewInt(1), BaseFee: big.NewInt(1),
		TxHash: types.EmptyTxsHash, ReceiptHash: types.EmptyReceiptsHash, UncleHash: types.EmptyUncleHash,
	}
	return err
}

func (g *generated) Head() *types.Header { return g.head }

func (g *generated) Accounts(_ context.Context, found func(common.Hash, *types.StateAccount) error) error {
	for i := range g.accounts {
		if err := found(key(i, g.accounts), g.account(i)); err != nil {
			return err
		}
	}
	return nil
}

func (g *generated) Slots(_ context.Context, address, _ common.Hash, found func(common.Hash, []byte) error) error {
	i := (binary.BigEndian.Uint64(address[:]) - 1) / (^uint64(0) / g.accounts)
	return g.eachSlot(g.slotsOf(i), found)
}

func (g *generated) eachSlot(n uint64, found func(common.Hash, []byte) error) error {
	for i := range n {
		slot := key(i, n)
		value, err := rlp.EncodeToBytes(common.TrimLeftZeroes(slot[8 : 8+1+i%20]))
		if err != nil {
			return err
		}
		if len(value) == 1 && value[0] == 0x80 {
			value = []byte{1}
		}
		if err := found(slot, value); err != nil {
			return err
		}
	}
	return nil
}

func (g *generated) Code(context.Context, common.Hash) ([]byte, error) { return nil, nil }

func (g *generated) Block(common.Hash, uint64) (*types.Block, types.Receipts, []byte, error) {
	return types.NewBlockWithHeader(g.head), nil, nil, nil
}
