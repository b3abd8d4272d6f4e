package ingesttest

import (
	"context"
	"testing"

	"ashlar/evm/source/demo"
	"ashlar/evm/source/demo/reference"

	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
)

// Dense is a chain for benchmarks, with many accounts and full blocks. The blocks of
// Amsterdam have access lists.
type Dense struct {
	Genesis      *core.Genesis
	Transactions int // in the blocks of Amsterdam

	blocks, lists [][]byte // RLP
}

// NewDense builds some blocks before Amsterdam and some of it, with that many
// transactions in the mean.
func NewDense(b *testing.B, transactions, before, amsterdam int) *Dense {
	b.Helper()
	config := demo.Dense(transactions)
	config.AmsterdamBlock = uint64(before)
	network, err := demo.New(config)
	if err != nil {
		b.Fatal(err)
	}
	genesis, err := network.Genesis()
	if err != nil {
		b.Fatal(err)
	}
	builder, err := reference.New(network)
	if err != nil {
		b.Fatal(err)
	}
	d := &Dense{Genesis: genesis}
	err = builder.Build(context.Background(), before+amsterdam, func(built reference.Block) error {
		if built.Block.NumberU64() > uint64(before) {
			d.Transactions += len(built.Block.Transactions())
		}
		d.blocks = append(d.blocks, encode(b, built.Block))
		d.lists = append(d.lists, encode(b, built.Block.AccessList()))
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	return d
}

// Decode returns the blocks, with their access lists or without. They have no cached
// hashes and senders.
func (d *Dense) Decode(b *testing.B, lists bool) []*types.Block {
	b.Helper()
	blocks := make([]*types.Block, len(d.blocks))
	for i := range blocks {
		blocks[i] = d.DecodeBlock(b, i, lists)
	}
	return blocks
}

// DecodeBlock returns one of the blocks, as Decode does.
func (d *Dense) DecodeBlock(b *testing.B, i int, list bool) *types.Block {
	b.Helper()
	block := new(types.Block)
	if err := rlp.DecodeBytes(d.blocks[i], block); err != nil {
		b.Fatal(err)
	}
	if list && block.Header().BlockAccessListHash != nil {
		decoded := new(bal.BlockAccessList)
		if err := rlp.DecodeBytes(d.lists[i], decoded); err != nil {
			b.Fatal(err)
		}
		block = block.WithAccessListUnsafe(decoded)
	}
	return block
}

func encode(b *testing.B, value any) []byte {
	b.Helper()
	encoded, err := rlp.EncodeToBytes(value)
	if err != nil {
		b.Fatal(err)
	}
	return encoded
}
