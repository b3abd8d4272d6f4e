package node

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"ashlar/internal/vectors"
	"ashlar/starknet"
	"ashlar/starknet/blockhash"
	"ashlar/starknet/source/feeder"
	"ashlar/starknet/source/node/nodetest"
	"ashlar/starknet/source/wire"
	"ashlar/strictjson"
)

// chainID returns a chain ID as a felt.
func chainID(text string) (f starknet.Felt) {
	copy(f[len(f)-len(text):], text)
	return f
}

// readAnswer reads a recorded response of a real node, as from the wire.
func readAnswer(t *testing.T, file string) (block *starknet.Block, err error) {
	t.Helper()
	text, err := os.ReadFile(vectors.Path(t, "starknet", "rpc", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `"jsonrpc"`) {
		text = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":1,"result":%s}`, text)
	}
	var answer struct {
		Result struct {
			Number uint64 `json:"block_number"`
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatal(err)
	}
	e := envelope{id: 1, in: wire.NewReader(bytes.NewReader(text), 1<<20)}
	err = e.read(func(in *wire.Reader) (err error) {
		block, err = readBlock(in, answer.Result.Number)
		return err
	})
	return block, err
}

func TestAnswersOfRealNodes(t *testing.T) {
	for _, test := range []struct {
		file         string
		transactions int
		events       int
		hash         string
	}{
		{"pathfinder_0.6.0_getBlockWithReceipts_latest", 5, 0, "0x6c6174657374"},
		{"pathfinder_0.7.0_getBlockWithReceipts_latest", 5, 0, "0x6c6174657374"},
		{"pathfinder_0.8.0_getBlockWithReceipts_latest", 5, 0, "0x6c6174657374"},
		{"starknet.go_blockWithReceipts_sepolia3100000", 3, 3, "0x1640b846e71502526539c32c8420cd7cb0f28d83ece2e6e71aeaf7c97960bb2"},
	} {
		block, err := readAnswer(t, test.file)
		if err != nil {
			t.Errorf("%s: %v", test.file, err)
			continue
		}
		if block.Hash.String() != test.hash || len(block.Transactions) != test.transactions || block.EventCount() != test.events {
			t.Errorf("%s: block %s of %d transactions and %d events, expected %s of %d and %d", test.file,
				block.Hash, len(block.Transactions), block.EventCount(), test.hash, test.transactions, test.events)
		}
	}
}

// Blocks that are not accepted yet are rejected, and so is a block from another node's test data
// that declares fewer transactions than it has.
func TestInvalidAnswers(t *testing.T) {
	for _, test := range []struct{ file, place, want string }{
		{"pathfinder_0.6.0_getBlockWithReceipts_pre_confirmed", "result.status", "missing"},
		{"pathfinder_0.8.0_getBlockWithReceipts_pre_confirmed", "result.status", "missing"},
		{"pathfinder_0.10.0_getBlockWithReceipts_pre_confirmed", "result.status", "missing"},
		{"starknet.go_blockWithReceipts_sepoliaPreConfirmed", "result.status", "missing"},
		{"pathfinder_0.10.0_getBlockWithReceipts_latest", "result.transaction_count", "found 2, but the block holds 5"},
	} {
		_, err := readAnswer(t, test.file)
		var wrong *strictjson.Error
		if !errors.As(err, &wrong) || wrong.Place != test.place || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, expected %q at %s", test.file, err, test.want, test.place)
		}
	}
}

// A response by version 0.10 of the specification has all inputs of the block's hash, even by the
// newest rule.
func TestHashOfARealNodesBlock(t *testing.T) {
	block, err := readAnswer(t, "starknet.go_blockWithReceipts_sepolia3100000")
	if err != nil {
		t.Fatal(err)
	}
	verdict, err := blockhash.New(chainID("SN_SEPOLIA")).Check(block)
	if err != nil || verdict != blockhash.Confirmed {
		t.Errorf("the hash of version %s is %s, %v, expected confirmed", block.Version, verdict, err)
	}
}

// gatewayChain returns a chain of real blocks.
func gatewayChain(t *testing.T, network string, last uint64) (blocks []*starknet.Block) {
	t.Helper()
	var paths []string
	for number := range last + 1 {
		paths = append(paths, vectors.Path(t, "starknet", "feeder", fmt.Sprintf("%s_block_%d.json", network, number)))
	}
	files, err := feeder.Open(t.Context(), paths...)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for {
		block, err := files.Next()
		if err == io.EOF {
			return blocks
		}
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, block)
	}
}

// Real blocks are transferred without changes in every version of the specification, and their
// hashes are confirmed.
func TestRealBlocksInEveryVersion(t *testing.T) {
	for _, network := range []struct {
		name, id string
		last     uint64
	}{{"sepolia", "SN_SEPOLIA", 6}, {"mainnet", "SN_MAIN", 2}} {
		blocks := gatewayChain(t, network.name, network.last)
		checker := blockhash.New(chainID(network.id))
		for spec := 6; spec <= 10; spec++ {
			fake := nodetest.New(t, spec, blocks)
			fake.ChainID = chainID(network.id)
			options := optionsFor(fake)
			options.ChainID = fake.ChainID
			options.Check = func(b *starknet.Block) error {
				verdict, err := checker.Check(b)
				if err == nil && verdict != blockhash.Confirmed {
					t.Errorf("%s, version 0.%d, block %d: the hash is %s", network.name, spec, b.Number, verdict)
				}
				return err
			}
			kept := followTo(t, newNode(t, options), 0, nil, blocks)
			for i, got := range kept.blocks {
				if want := fieldsOf(blocks[i], spec); !reflect.DeepEqual(got, want) {
					t.Errorf("%s, version 0.%d, block %d: read as\n%+v, expected\n%+v", network.name, spec, got.Number, got, want)
				}
			}
		}
	}
}

// fieldsOf returns a block with only the fields that a version of the specification has.
func fieldsOf(b *starknet.Block, spec int) *starknet.Block {
	out := *b
	if spec < 7 {
		out.L1DataGasPrice, out.L1DataMode = starknet.GasPrice{}, starknet.Calldata
	}
	if spec < 10 {
		out.Commitments = starknet.Commitments{}
	}
	out.Transactions = slices.Clone(b.Transactions)
	if spec < 8 {
		for i := range out.Transactions {
			out.Transactions[i].Receipt.Gas = starknet.GasUsed{}
		}
	}
	return &out
}
