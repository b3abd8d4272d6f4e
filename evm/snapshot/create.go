package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	"ashlar/chain"
	"ashlar/evm/archive"
	"ashlar/evm/export"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
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

// ErrFolder means that a folder has other contents than an interrupted snapshot, or that another
// snapshot is being written to it.
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

// New prepares a snapshot. Nothing is written yet. Blocks must be settled, and the state have
// its trie nodes: the error is an [*archive.Pruned] if they are too old.
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
	if err := a.CheckTries(from); err != nil {
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

// Run writes the snapshot and returns the size of its chunks. If one was interrupted in the folder,
// its chunks are removed first: those of another block would only take space. The error is [ErrFolder]
// if another snapshot is being written there, or was since New.
func (c *Creator) Run(ctx context.Context) (int64, error) {
	defer c.encoder.Close()
	if err := os.MkdirAll(c.folder, 0o755); err != nil {
		return 0, err
	}
	folder, err := claim(c.folder)
	if err != nil {
		return 0, err
	}
	defer folder.release()
	if err := checkFolder(c.folder); err != nil {
		return 0, err
	}
	if err := removeChunks(c.folder); err != nil {
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
	if err := syncFolder(c.folder); err != nil { // the manifest names chunks that are there
		return 0, err
	}
	if err := folder.complete(append(text, '\n')); err != nil {
		return 0, err
	}
	return c.manifest.Bytes(), syncFolder(c.folder)
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
