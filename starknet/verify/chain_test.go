package verify_test

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"ashlar/internal/vectors"
	"ashlar/kv"
	"ashlar/kv/pebble"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/blockhash"
	"ashlar/starknet/ingest"
	"ashlar/starknet/source/feeder"
	"ashlar/starknet/source/synthetic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

const (
	chainID    = "SN_TEST"
	firstBlock = 1020 // so that blocks are in two chunks
	madeBlocks = 8
)

// madeUp returns a chain whose hashes match no rule.
func madeUp() (blocks []*starknet.Block) {
	options := synthetic.Default()
	options.First = firstBlock
	for chain := synthetic.New(options); len(blocks) < madeBlocks; {
		blocks = append(blocks, chain.Next())
	}
	return blocks
}

// sealed returns a chain with the hashes and commitments of a version since 0.13.2, as of an
// archive, which has no signatures but the commitments in the headers.
func sealed(t testing.TB, version string) []*starknet.Block {
	t.Helper()
	hashes := blockhash.New(starknet.FeltOfText(chainID))
	blocks := madeUp()
	for i, block := range blocks {
		block.Version = version
		block.Commitments.Transactions = starknet.FeltOf(uint64(1000 + i))
		block.Commitments.StateDiff, block.Commitments.StateDiffLength = starknet.FeltOf(5), 3
		if i > 0 {
			block.Parent = blocks[i-1].Hash
		}
		seal(t, hashes, block)
	}
	return blocks
}

// seal corrects the hash and commitments of a block.
func seal(t testing.TB, hashes *blockhash.Checker, block *starknet.Block) {
	t.Helper()
	for {
		verdict, err := hashes.CheckUnsigned(block)
		wrong := (*blockhash.Error)(nil)
		if !errors.As(err, &wrong) {
			if err != nil || verdict != blockhash.Confirmed {
				t.Fatalf("block %d cannot be sealed: %s, %v", block.Number, verdict, err)
			}
			return
		}
		switch wrong.What {
		case blockhash.EventCommitment:
			block.Commitments.Events = wrong.Expected
		case blockhash.ReceiptCommitment:
			block.Commitments.Receipts = wrong.Expected
		default:
			block.Hash = wrong.Expected
		}
	}
}

// real returns a chain of recorded blocks of gateways.
func real(t testing.TB, names ...string) (blocks []*starknet.Block) {
	t.Helper()
	for _, name := range names {
		files, err := feeder.Open(t.Context(), filepath.Join(vectors.Path(t, "starknet", "feeder"), name+".json"))
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		block, err := files.Next()
		if err != nil {
			t.Fatal(err)
		}
		blocks = append(blocks, block)
	}
	return blocks
}

// sepolia returns the first blocks of sepolia, whose headers have commitments by the rules until
// 0.13.1.
func sepolia() (names []string) {
	for i := range 7 {
		names = append(names, fmt.Sprintf("sepolia_block_%d", i))
	}
	return names
}

// imported imports a chain as a user would, in memory.
func imported(t testing.TB, id string, blocks []*starknet.Block) kv.Store {
	t.Helper()
	store, a := create(t, id)
	source := sliceSource(blocks)
	if err := ingest.New(a).Import(t.Context(), &source); err != nil {
		t.Fatal(err)
	}
	return store
}

// appended appends a chain without checks, in memory.
func appended(t testing.TB, blocks []*starknet.Block) kv.Store {
	t.Helper()
	store, a := create(t, chainID)
	if err := a.Append(t.Context(), blocks...); err != nil {
		t.Fatal(err)
	}
	return store
}

func create(t testing.TB, id string) (kv.Store, *archive.Archive) {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "network", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	a, err := archive.Create(t.Context(), store, id)
	if err != nil {
		t.Fatal(err)
	}
	return store, a
}

// sliceSource is a source of given blocks.
type sliceSource []*starknet.Block

func (s *sliceSource) Next() (*starknet.Block, error) {
	if len(*s) == 0 {
		return nil, io.EOF
	}
	block := (*s)[0]
	*s = (*s)[1:]
	return block, nil
}
