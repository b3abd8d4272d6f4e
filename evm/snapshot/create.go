package snapshot

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/execute"
	"ashlar/evm/export"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/trie"
	"github.com/klauspost/compress/zstd"
)

// recentCodes is how many codes are remembered, so that most are written once.
const recentCodes = 1 << 19

// Options say what a snapshot contains.
type Options struct {
	Folder string
	// Head is the last block, and From the first one with state; nil: the newest settled
	// block, and the head.
	Head, From *uint64
	// ChunkBytes is the size at which a chunk ends; 0: the usual one. Tests set it.
	ChunkBytes int
}

// ErrRange means that an archive does not have the blocks of a snapshot.
var ErrRange = errors.New("there can be no such snapshot")

// ErrFolder means that a folder has other contents than an interrupted snapshot.
var ErrFolder = errors.New("the folder cannot take a snapshot")

// Creator writes a snapshot of an archive. It belongs to one goroutine, except for Progress.
type Creator struct {
	archive  *archive.Archive
	blocks   *export.Blocks
	folder   string
	most     int
	encoder  *zstd.Encoder
	codes    lru.BasicLRU[common.Hash, struct{}]
	manifest Manifest
	root     common.Hash

	through, blocksDone, accounts, slots atomic.Uint64
}

// New prepares a snapshot. Nothing is written yet. Blocks must be settled and have their
// state: the error is an [*archive.Pruned] if they are too old.
func New(ctx context.Context, a *archive.Archive, o Options) (*Creator, error) {
	if err := checkFolder(o.Folder); err != nil {
		return nil, err
	}
	settled, ok := a.Settled()
	if !ok {
		return nil, errors.New("there are no blocks")
	}
	head := settled.Number
	if o.Head != nil {
		head = *o.Head
	}
	from := head
	if o.From != nil {
		from = *o.From
	}
	switch {
	case head > settled.Number:
		return nil, fmt.Errorf("%w: block %d is not settled (the newest settled block is %d)", ErrRange, head, settled.Number)
	case from > head || from == 0:
		return nil, fmt.Errorf("%w: the state of block %d for a snapshot of block %d (want a state from 1 up to that block)", ErrRange, from, head)
	}
	if err := a.CheckState(from); err != nil {
		return nil, err
	}
	c := &Creator{archive: a, blocks: export.NewBlocks(a), folder: o.Folder, most: o.ChunkBytes, codes: lru.NewBasicLRU[common.Hash, struct{}](recentCodes)}
	if c.most == 0 {
		c.most = chunkBytes
	}
	return c, c.describe(ctx, from, head)
}

// describe fills in what the manifest says of the blocks.
func (c *Creator) describe(ctx context.Context, from, head uint64) (err error) {
	genesis, err := c.archive.Header(ctx, 0)
	if err != nil {
		return err
	}
	state, err := c.archive.Header(ctx, from)
	if err != nil {
		return err
	}
	last, err := c.archive.Header(ctx, head)
	if err != nil {
		return err
	}
	c.root = state.Root
	c.manifest = Manifest{
		Format: format, ChainID: chainID(c.archive.Genesis()), Genesis: genesis.Hash,
		State: Block{from, state.Hash}, Head: Block{head, last.Hash}, TotalDifficulty: state.TotalDifficulty.String(),
		Chunks: make(map[Kind][]Chunk),
	}
	c.encoder, err = newEncoder()
	return err
}

// ours matches the names of files of a snapshot but the manifest.
var ours = regexp.MustCompile(`^(headers|accounts|slots|blocks|bodies)-[0-9]{5,}-[0-9a-f]{16}\.zst(\.unfinished)?$|^manifest\.json\.unfinished$`)

// checkFolder refuses a folder with a snapshot or foreign files. It may have chunks of a
// snapshot that was interrupted.
func checkFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		switch name := entry.Name(); {
		case name == manifestName:
			return fmt.Errorf("%w: %s has a snapshot already (want another folder)", ErrFolder, folder)
		case !ours.MatchString(name):
			return fmt.Errorf("%w: %s has %q, which is not of a snapshot (want an empty folder)", ErrFolder, folder, name)
		}
	}
	return nil
}

// State returns the first block with state.
func (c *Creator) State() chain.Ref { return c.manifest.State.ref() }

// Head returns the last block.
func (c *Creator) Head() chain.Ref { return c.manifest.Head.ref() }

// Progress is the progress of [Creator.Run].
type Progress struct {
	Accounts, Slots, Blocks uint64
	Share                   float64 // of the state that is done
}

// Progress may be called while Run runs.
func (c *Creator) Progress() Progress {
	return Progress{
		Accounts: c.accounts.Load(), Slots: c.slots.Load(), Blocks: c.blocksDone.Load(),
		Share: float64(c.through.Load()) / (1 << 32) / (1 << 32),
	}
}

// Run writes the snapshot and returns the size of its chunks. An interrupted one begins anew;
// chunks of the interrupted one that are not part of the new one are removed.
func (c *Creator) Run(ctx context.Context) (int64, error) {
	defer c.encoder.Close()
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return 0, err
	}
	for _, write := range []func(context.Context) error{c.writeHeaders, c.writeBlocks, c.writeState, c.writeBodies} {
		if err := write(ctx); err != nil {
			return 0, err
		}
	}
	c.manifest.Accounts, c.manifest.Slots = c.accounts.Load(), c.slots.Load()
	text, err := json.MarshalIndent(c.manifest, "", " ")
	if err != nil {
		return 0, err
	}
	if len(text) >= maxManifest {
		return 0, fmt.Errorf("the manifest would have %d bytes (want less than %d)", len(text), maxManifest)
	}
	if err := c.removeOthers(); err != nil {
		return 0, err
	}
	if err := writeFile(c.folder, manifestName, append(text, '\n')); err != nil {
		return 0, err
	}
	return c.manifest.Bytes(), syncFolder(c.folder)
}

// removeOthers removes chunks of an interrupted snapshot that are not part of this one, and
// makes the names of the others durable.
func (c *Creator) removeOthers() error {
	keep := make(map[string]bool)
	for kind, chunks := range c.manifest.Chunks {
		for i := range chunks {
			keep[chunks[i].name(kind, i)] = true
		}
	}
	entries, err := os.ReadDir(c.folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if name := entry.Name(); !keep[name] && ours.MatchString(name) {
			if err := os.Remove(filepath.Join(c.folder, name)); err != nil {
				return err
			}
		}
	}
	return syncFolder(c.folder)
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

func (c *Creator) writer(kind Kind) *chunkWriter {
	return &chunkWriter{folder: c.folder, kind: kind, most: c.most, encoder: c.encoder}
}

// finish ends the chunks of a kind and enters them in the manifest.
func (c *Creator) finish(w *chunkWriter) error {
	err := w.end()
	if c.manifest.Chunks[w.kind] = w.chunks; w.chunks == nil {
		c.manifest.Chunks[w.kind] = []Chunk{}
	}
	return err
}

// writeState writes accounts and slots side by side. The tries are built anew, so that no
// snapshot is made of a damaged archive.
func (c *Creator) writeState(ctx context.Context) error {
	accounts, slots := c.writer(Accounts), c.writer(Slots)
	tries := trie.NewStackTrie(nil)
	state := c.archive.StateAt(c.manifest.State.Number)
	err := execute.EachLeaf(ctx, state, execute.TrieID{Root: c.root}, common.Hash{}, func(address common.Hash, value []byte) (bool, error) {
		account := new(types.StateAccount)
		if err := rlp.DecodeBytes(value, account); err != nil {
			return false, fmt.Errorf("%w: account %#x: %w", archive.ErrCorrupt, address, err)
		}
		if err := tries.Update(address[:], value); err != nil {
			return false, fmt.Errorf("%w: account %#x: %w", archive.ErrCorrupt, address, err)
		}
		if err := c.writeAccount(ctx, accounts, state, address, account); err != nil {
			return false, err
		}
		if account.Root != types.EmptyRootHash {
			if err := c.writeSlots(ctx, slots, state, address, account.Root); err != nil {
				return false, err
			}
		}
		c.accounts.Add(1)
		c.through.Store(binary.BigEndian.Uint64(address[:8]))
		return true, nil
	})
	if err != nil {
		return err
	}
	if got := tries.Hash(); got != c.root {
		return fmt.Errorf("%w: the accounts of block %d have the root %#x, the header names %#x", archive.ErrCorrupt, c.manifest.State.Number, got, c.root)
	}
	return errors.Join(c.finish(accounts), c.finish(slots))
}

func (c *Creator) writeAccount(ctx context.Context, w *chunkWriter, state archive.State, address common.Hash, account *types.StateAccount) error {
	var code []byte
	if hash := common.BytesToHash(account.CodeHash); hash != types.EmptyCodeHash {
		known := c.codes.Contains(hash)
		if c.codes.Add(hash, struct{}{}); !known {
			var err error
			if code, err = state.Code(ctx, hash); err != nil {
				return fmt.Errorf("account %#x: code: %w", address, err)
			}
		}
	}
	first, err := w.begins()
	if err != nil {
		return err
	}
	if first {
		w.first.Account = &address
	}
	w.raw = append(w.raw, address[:]...)
	w.raw = appendField(w.raw, types.SlimAccountRLP(*account))
	w.raw = appendField(w.raw, code)
	return nil
}

func (c *Creator) writeSlots(ctx context.Context, w *chunkWriter, state archive.State, address, root common.Hash) error {
	tries, begun := trie.NewStackTrie(nil), false
	err := execute.EachLeaf(ctx, state, execute.TrieID{Owner: address, Root: root}, common.Hash{}, func(slot common.Hash, value []byte) (bool, error) {
		_, word, rest, err := rlp.Split(value)
		if err == nil && (len(rest) > 0 || len(word) == 0 || len(word) > common.HashLength) {
			err = fmt.Errorf("the value %#x", value)
		}
		if err == nil {
			err = tries.Update(slot[:], value)
		}
		if err != nil {
			return false, fmt.Errorf("%w: slot %#x of account %#x: %w", archive.ErrCorrupt, slot, address, err)
		}
		first, err := w.begins()
		if err != nil {
			return false, err
		}
		if first {
			w.first.Account = &address
		}
		if first || !begun {
			w.raw = append(append(w.raw, 0), address[:]...)
		}
		begun = true
		w.raw = append(append(w.raw, byte(len(word))), slot[:]...)
		w.raw = append(w.raw, word...)
		c.slots.Add(1)
		return true, nil
	})
	if err != nil {
		return err
	}
	if got := tries.Hash(); got != root {
		return fmt.Errorf("%w: the slots of account %#x have the root %#x, the account names %#x", archive.ErrCorrupt, address, got, root)
	}
	return nil
}

// writeHeaders writes the headers from the block with state to the head.
func (c *Creator) writeHeaders(ctx context.Context) error {
	w := c.writer(Headers)
	for number := c.manifest.State.Number; number <= c.manifest.Head.Number; number++ {
		header, _, err := c.blocks.Header(ctx, number)
		if err == nil {
			err = c.put(w, number, header)
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
	}
	return c.finish(w)
}

// writeBlocks writes the block with state and those before it.
func (c *Creator) writeBlocks(ctx context.Context) error {
	w := c.writer(Blocks)
	for number := c.manifest.State.Number; number >= oldest(c.manifest.State.Number); number-- {
		record, err := c.recorded(ctx, number)
		if err == nil {
			err = c.put(w, number, record)
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
	}
	return c.finish(w)
}

func (c *Creator) recorded(ctx context.Context, number uint64) ([]byte, error) {
	header, _, err := c.blocks.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	decoded := new(types.Header)
	if err := rlp.DecodeBytes(header, decoded); err != nil {
		return nil, err
	}
	body, err := c.blocks.Body(ctx, number)
	if err != nil {
		return nil, err
	}
	content := new(types.Body)
	if err := rlp.DecodeBytes(body, content); err != nil {
		return nil, err
	}
	one := recorded{Block: types.NewBlockWithHeader(decoded).WithBody(*content)}
	if one.Receipts, err = c.blocks.Receipts(ctx, number); err != nil {
		return nil, err
	}
	for _, receipt := range one.Receipts {
		receipt.Bloom = types.CreateBloom(receipt)
	}
	if decoded.BlockAccessListHash != nil {
		if one.AccessList, err = c.archive.AccessList(ctx, number); err != nil {
			return nil, err
		}
	}
	return rlp.EncodeToBytes(&one)
}

// writeBodies writes the blocks after the one with state.
func (c *Creator) writeBodies(ctx context.Context) error {
	w := c.writer(Bodies)
	for number := c.manifest.State.Number + 1; number <= c.manifest.Head.Number; number++ {
		body, err := c.blocks.Body(ctx, number)
		if err == nil {
			err = c.put(w, number, body)
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
		c.blocksDone.Add(1)
	}
	return c.finish(w)
}

// put appends a record about a block.
func (c *Creator) put(w *chunkWriter, number uint64, record []byte) error {
	first, err := w.begins()
	if err != nil {
		return err
	}
	if first {
		w.first.Block = &number
	}
	w.raw = appendField(w.raw, record)
	return nil
}
