// Package geth reads the data directory of a stopped geth: the state of its newest block
// that has one, and blocks with their receipts. It changes nothing in the directory.
//
// Both of geth's state schemes are supported:
//
//	path   one flat state and trie on disk, and the changes of up to 128 newer blocks in a
//	       journal that geth writes when it stops
//	hash   trie nodes by their hash, of some blocks or of all
package geth

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"syscall"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/ethdb/leveldb"
	"github.com/ethereum/go-ethereum/ethdb/pebble"
	"github.com/ethereum/go-ethereum/triedb"
	"github.com/ethereum/go-ethereum/triedb/hashdb"
	"github.com/ethereum/go-ethereum/triedb/pathdb"
)

const (
	cacheMiB  = 128
	openFiles = 512
	// persistedWithin is how many blocks below the head are searched for one with state. A
	// geth that was killed has lost the state of the blocks since it last wrote one.
	persistedWithin = 200_000
)

// Dir is the open data directory of a stopped geth. Its iterations belong to one goroutine.
type Dir struct {
	chain ethdb.Database // blocks, and what they refer to
	tries *triedb.Database
	flat  bool // the flat state is complete
	head  *types.Header
	last  uint64 // number of geth's head
}

// Open opens the directory that geth was given as --datadir.
func Open(dir string) (*Dir, error) {
	d, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("geth's directory %s: %w", dir, err)
	}
	return d, nil
}

func open(dir string) (*Dir, error) {
	showErrors()
	instance := filepath.Join(dir, "geth")
	data := filepath.Join(instance, "chaindata")
	if _, err := os.Stat(data); err != nil {
		return nil, fmt.Errorf("%w (want the directory of geth's --datadir)", err)
	}
	rows, err := openRows(data)
	if errors.Is(err, syscall.EAGAIN) { // its lock is held
		return nil, errors.New("geth is running (stop it first)")
	}
	if err != nil {
		return nil, err
	}
	d := new(Dir)
	d.chain, err = rawdb.Open(rows, rawdb.OpenOptions{Ancient: filepath.Join(data, "ancient"), ReadOnly: true})
	if err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	// The trie database gets the rows without the frozen files: it needs none of them, and
	// would try to repair those of the state history.
	switch rawdb.ReadStateScheme(d.chain) {
	case rawdb.PathScheme:
		config := *pathdb.ReadOnly
		config.JournalDirectory = filepath.Join(instance, "triedb")
		d.tries = triedb.NewDatabase(rawdb.NewDatabase(rows), &triedb.Config{PathDB: &config})
		d.flat = d.tries.SnapshotCompleted()
	case rawdb.HashScheme:
		d.tries = triedb.NewDatabase(rawdb.NewDatabase(rows), &triedb.Config{HashDB: hashdb.Defaults})
	default:
		return nil, errors.Join(errors.New("it has no state"), d.chain.Close())
	}
	if d.head, err = d.newest(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func openRows(data string) (ethdb.KeyValueStore, error) {
	switch engine := rawdb.PreexistingDatabase(data); {
	case engine == rawdb.DBLeveldb:
		return leveldb.New(data, cacheMiB, openFiles, "", true)
	case engine != rawdb.DBPebble:
		return nil, errors.New("chaindata holds no database")
	case pebble.NeedsV1(data):
		return pebble.NewV1(data, cacheMiB, openFiles, "", true)
	}
	return pebble.New(data, cacheMiB, openFiles, "", true)
}

// newest returns the header of the newest block whose state is there.
func (d *Dir) newest() (*types.Header, error) {
	hash := rawdb.ReadHeadBlockHash(d.chain)
	number, ok := rawdb.ReadHeaderNumber(d.chain, hash)
	if !ok {
		return nil, errors.New("it has no head block")
	}
	if rawdb.ReadSnapSyncStatusFlag(d.chain) == rawdb.StateSyncRunning {
		return nil, errors.New("its state is not complete: geth has not finished its snap sync")
	}
	d.last = number
	for below := range uint64(persistedWithin) {
		header := rawdb.ReadHeader(d.chain, hash, number)
		if header == nil {
			return nil, fmt.Errorf("the header of block %d (%#x) is missing", number, hash)
		}
		if d.hasState(header.Root) {
			return header, nil
		}
		if number == 0 {
			return nil, fmt.Errorf("no block has its state (the head is block %d)", below)
		}
		hash, number = header.ParentHash, number-1
	}
	return nil, fmt.Errorf("none of the last %d blocks has its state", persistedWithin)
}

// hasState reports whether the state with a root is there. geth writes a root after
// everything below it.
func (d *Dir) hasState(root common.Hash) bool {
	if root == types.EmptyRootHash {
		return true
	}
	reader, err := d.tries.NodeReader(root)
	if err != nil {
		return false
	}
	blob, err := reader.Node(common.Hash{}, nil, root)
	return err == nil && len(blob) > 0
}

// Close releases the directory.
func (d *Dir) Close() error { return errors.Join(d.tries.Close(), d.chain.Close()) }

// Head returns the header of the block whose state is read.
func (d *Dir) Head() *types.Header { return d.head }

// Last returns the number of geth's head, which may be above [Dir.Head].
func (d *Dir) Last() uint64 { return d.last }

// Genesis returns the hash of block 0.
func (d *Dir) Genesis() common.Hash { return rawdb.ReadCanonicalHash(d.chain, 0) }

// Block returns a block with its receipts, and its access list if it has one. The receipts
// have their types and blooms. Nothing is checked.
func (d *Dir) Block(hash common.Hash, number uint64) (*types.Block, types.Receipts, []byte, error) {
	block := rawdb.ReadBlock(d.chain, hash, number)
	if block == nil {
		return nil, nil, nil, fmt.Errorf("geth's directory: block %d (%#x) is missing", number, hash)
	}
	receipts := rawdb.ReadRawReceipts(d.chain, hash, number)
	if receipts == nil && len(block.Transactions()) > 0 || len(receipts) != len(block.Transactions()) {
		return nil, nil, nil, fmt.Errorf("geth's directory: block %d (%#x): %d receipts for %d transactions", number, hash, len(receipts), len(block.Transactions()))
	}
	for i, receipt := range receipts {
		receipt.Type = block.Transactions()[i].Type()
		receipt.Bloom = types.CreateBloom(receipt)
	}
	return block, receipts, rawdb.ReadAccessListRLP(d.chain, hash, number), nil
}

// TotalDifficulty returns the total difficulty of the chain up to and including the head.
// It follows the parents' hashes down to block 0, so the head descends from
// [Dir.Genesis]. below is called with numbers of blocks on the way.
func (d *Dir) TotalDifficulty(ctx context.Context, below func(number uint64)) (*big.Int, error) {
	total := new(big.Int).Set(d.head.Difficulty)
	hash, number := d.head.ParentHash, d.head.Number.Uint64()
	for number > 0 {
		number--
		header := rawdb.ReadHeader(d.chain, hash, number)
		if header == nil {
			return nil, fmt.Errorf("geth's directory: the header of block %d (%#x) is missing", number, hash)
		}
		if got := header.Hash(); got != hash {
			return nil, fmt.Errorf("geth's directory: the header of block %d has the hash %#x (want %#x)", number, got, hash)
		}
		total.Add(total, header.Difficulty)
		hash = header.ParentHash
		if number%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			below(number)
		}
	}
	return total, nil
}
