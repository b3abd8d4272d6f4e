// Package synthetic generates synthetic Starknet chains that depend only on a seed. They contain
// many of the cases that are rare in real chains: empty blocks, reverted transactions with
// events, events without keys, and rare contracts and keys. Hashes link the blocks, but are not
// computed from their contents.
package synthetic

import (
	"encoding/binary"
	"math/rand/v2"

	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

// Options describe a chain.
type Options struct {
	Seed         uint64
	First        uint64 // number of the first block
	Transactions int    // average per block; at least 1
	Contracts    int    // number of contracts that emit events; at least 1
	Accounts     int    // number of accounts that occur as keys; at least 1
	Start        uint64 // time of the first block, in Unix seconds
	Spacing      uint64 // between blocks, in seconds
}

// Default returns the options of a small network.
func Default() Options {
	return Options{Seed: 1, Transactions: 6, Contracts: 24, Accounts: 1000, Start: 1_700_000_000, Spacing: 30}
}

// Chain generates the blocks of a chain. It is for use by one goroutine.
type Chain struct {
	options Options
	random  *rand.Rand
	number  uint64
	parent  starknet.Felt
	nonce   uint64
}

// New returns a chain at its first block.
func New(options Options) *Chain {
	return &Chain{options: options, random: rand.New(rand.NewPCG(options.Seed, 0x6d616465)), number: options.First, nonce: options.Seed << 32}
}

// Fork returns another chain that continues from the last block with another seed.
func (c *Chain) Fork(seed uint64) *Chain {
	fork := New(c.options)
	fork.random = rand.New(rand.NewPCG(seed, 0x666f726b))
	fork.number, fork.parent, fork.nonce = c.number, c.parent, seed<<32
	return fork
}

// Next returns the next block.
func (c *Chain) Next() *starknet.Block {
	block := &starknet.Block{Header: starknet.Header{
		Number: c.number, Parent: c.parent, NewRoot: c.word(),
		Timestamp: c.options.Start + (c.number-c.options.First)*c.options.Spacing,
		Sequencer: Contract(0), Version: "0.13.2", Status: starknet.AcceptedOnL2,
		L1GasPrice:     starknet.GasPrice{Wei: starknet.FeltOf(1_000_000_007), Fri: starknet.FeltOf(40_000_000_000_003)},
		L1DataGasPrice: starknet.GasPrice{Wei: starknet.FeltOf(1), Fri: starknet.FeltOf(40_001)},
		L2GasPrice:     starknet.GasPrice{Wei: starknet.FeltOf(100_000), Fri: starknet.FeltOf(4_000_000_000)},
		L1DataMode:     starknet.Blob,
	}}
	if c.random.IntN(8) > 0 {
		for range 1 + c.random.IntN(2*c.options.Transactions) {
			block.Transactions = append(block.Transactions, c.transaction())
		}
	}
	content := append(c.parent[:], binary.BigEndian.AppendUint64(nil, c.nonce)...)
	block.Hash = Hash(binary.BigEndian.AppendUint64(content, c.number))
	c.number++
	c.parent = block.Hash
	return block
}

func (c *Chain) transaction() starknet.Transaction {
	c.nonce++
	t := starknet.Transaction{
		Hash: Hash(binary.BigEndian.AppendUint64([]byte("transaction"), c.nonce)),
		Kind: starknet.Invoke, Version: 3,
		Receipt: starknet.Receipt{
			ActualFee: starknet.FeltOf(c.random.Uint64N(1 << 50)),
			Gas:       starknet.GasUsed{L1Data: 128 + c.random.Uint64N(1000), L2: c.random.Uint64N(5_000_000)},
		},
	}
	switch c.random.IntN(40) {
	case 0:
		t.Kind, t.ContractAddress = starknet.DeployAccount, c.word()
	case 1:
		t.Kind = starknet.Declare
	case 2:
		t.Kind, t.Version, t.MessageHash = starknet.L1Handler, 0, common.Hash(c.word())
	case 3:
		t.Receipt.Messages = []starknet.Message{{From: Contract(c.rare(c.options.Contracts)), To: c.word(), Payload: []starknet.Felt{c.word(), {}}}}
	case 4:
		t.Receipt.Reverted, t.Receipt.RevertReason = true, "Error in the called contract: 'Insufficient balance'"
	}
	for range c.random.IntN(8) {
		t.Receipt.Events = append(t.Receipt.Events, c.event())
	}
	return t
}

func (c *Chain) event() starknet.Event {
	event := starknet.Event{From: Contract(c.rare(c.options.Contracts))}
	if c.random.IntN(30) > 0 {
		event.Keys = append(event.Keys, Selector(c.rare(5)))
	}
	for range c.random.IntN(3) {
		event.Keys = append(event.Keys, Account(c.random.IntN(c.options.Accounts)))
	}
	for range c.random.IntN(5) {
		event.Data = append(event.Data, starknet.FeltOf(c.random.Uint64()>>c.random.IntN(64)))
	}
	return event
}

// rare returns 0 with probability 1/2, 1 with probability 1/4 and so on, always below n.
func (c *Chain) rare(n int) int {
	i := 0
	for i < n-1 && c.random.IntN(2) == 0 {
		i++
	}
	return i
}

func (c *Chain) word() (f starknet.Felt) {
	for i := 1; i < len(f); i += 8 {
		var eight [8]byte
		binary.BigEndian.PutUint64(eight[:], c.random.Uint64())
		copy(f[i:], eight[:])
	}
	return f
}

// Contract returns the address of contract i, which emits half as many events as contract i-1.
func Contract(i int) starknet.Felt { return Hash([]byte{'c', byte(i >> 8), byte(i)}) }

// Account returns the address of account i. All accounts occur equally often.
func Account(i int) starknet.Felt { return Hash([]byte{'a', byte(i >> 16), byte(i >> 8), byte(i)}) }

// Selector returns the first key of events of kind i; the lowest kinds are the most frequent.
func Selector(i int) starknet.Felt {
	names := []string{"Transfer", "Approval", "Swap", "Sync", "Upgraded"}
	return Hash([]byte(names[i%len(names)]))
}

// Hash returns Starknet's name hash: the part of keccak256 that fits a felt.
func Hash(content []byte) starknet.Felt {
	hash := starknet.Felt(crypto.Keccak256Hash(content))
	hash[0] &= 0x03
	return hash
}
