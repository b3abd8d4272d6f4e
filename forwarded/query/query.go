// Package query answers questions about a forwarded network: it resolves the block that a
// question names in a [forwarded.View], asks the nodes about exactly that block, and keeps
// answers that can be used again.
//
//	block of the question   is asked for         and the answer is kept
//	finalized or older      by its number        in the archive, for ever
//	  checked, not followed by its number        not at all
//	newer, in the view      by its hash          in memory, while the head stays
//	above the head          not at all
//
// So an answer is about one block, whichever node gives it, and a node that is on another
// branch cannot answer by mistake.
package query

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/forwarded/archive"
	"ashlar/forwarded/ingest"
	"ashlar/jsonrpc"
	"ashlar/limit"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
)

// Block is a block that a question is about.
type Block struct {
	Number uint64
	Hash   common.Hash     // zero if it is not one of the newest
	Final  bool            // no reorganization can replace it
	Named  json.RawMessage // the parameter to ask nodes with, if neither number nor hash will do
}

// recentBytes is the memory for answers about blocks that are not final.
const recentBytes = 16 << 20

// Chain answers questions about one network. It is safe for concurrent use.
type Chain struct {
	log      *slog.Logger
	pool     *upstream.Pool
	follower *ingest.Follower
	archive  *archive.Archive
	recent   *lru.SizeConstrainedCache[string, []byte]
	refuses  atomic.Bool // the store refused the last answer
	span     span
	checked  bool
	links    links
}

// NewChain returns a chain. If checked is set, what nodes say about blocks, transactions, receipts
// and logs is checked.
func NewChain(pool *upstream.Pool, follower *ingest.Follower, a *archive.Archive, checked bool, log *slog.Logger) *Chain {
	return &Chain{log: log, pool: pool, follower: follower, archive: a, checked: checked, recent: lru.NewSizeConstrainedCache[string, []byte](recentBytes)}
}

// View returns the present view. Before the first head it waits.
func (c *Chain) View(ctx context.Context) (view *forwarded.View, err error) {
	if view = c.follower.View(); view != nil {
		return view, nil
	}
	err = limit.Yield(ctx, func() error {
		view, err = c.follower.Await(ctx)
		return err
	})
	return view, err
}

// Present returns the present view, nil before the first head.
func (c *Chain) Present() *forwarded.View { return c.follower.View() }

// Changed returns a channel that is closed when the view changes.
func (c *Chain) Changed() <-chan struct{} { return c.follower.Changed() }

// Resolve returns the block that a parameter names. It returns chain.ErrUnknownBlock for a number
// above the head. A hash that the view does not have may be that of an older block.
func Resolve(view *forwarded.View, id chain.BlockID) (Block, error) {
	number := id.Number
	known := true
	switch id.Tag {
	case chain.Latest:
		number = view.Head().Number
	case chain.Earliest:
		number = 0
	case chain.Safe:
		if number, known = view.Safe(); !known {
			return Block{}, chain.ErrNoSafe
		}
	case chain.Finalized:
		if number, known = view.Finalized(); !known {
			return Block{}, chain.ErrNoFinalized
		}
	case chain.Pending:
		return Block{Number: view.Head().Number, Named: json.RawMessage(`"pending"`)}, nil
	}
	if id.Hash != nil {
		if number, known = view.Number(*id.Hash); !known {
			return Block{Number: view.Head().Number, Named: fmt.Appendf(nil, `"%#x"`, *id.Hash)}, nil
		}
		return Block{Number: number, Hash: *id.Hash, Final: view.IsFinal(number)}, nil
	}
	if number > view.Head().Number {
		return Block{}, chain.ErrUnknownBlock
	}
	block := Block{Number: number, Final: view.IsFinal(number)}
	if b, ok := view.At(number); ok {
		block.Hash = b.Hash
	}
	return block, nil
}

// ByHash returns the parameter that names the block by its hash, and false if that is not
// known, or not necessary because the block is final.
func (b *Block) ByHash() (text string, ok bool) {
	return `"` + b.Hash.Hex() + `"`, b.Hash != (common.Hash{}) && !b.Final && b.Named == nil
}

// ByNumber returns the parameter that names the block by its number, or as the client did.
func (b *Block) ByNumber() string {
	if b.Named != nil {
		return string(b.Named)
	}
	return `"0x` + strconv.FormatUint(b.Number, 16) + `"`
}

// Ref returns the number and the hash.
func (b *Block) Ref() chain.Ref { return chain.Ref{Number: b.Number, Hash: b.Hash} }

// headWait is how long a question about a block above the head waits for the head.
const headWait = 3 * time.Second

// AwaitBlock waits a moment for the head to reach a block that a node has named already, so
// that no client learns of a block that it cannot ask for.
func (c *Chain) AwaitBlock(ctx context.Context, number uint64) error {
	ctx, cancel := context.WithTimeout(ctx, headWait)
	defer cancel()
	for {
		changed := c.follower.Changed()
		if view := c.follower.View(); view != nil && view.Head().Number >= number {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// NumberOf returns the block number of a transaction, receipt or block, and false if it has none.
func NumberOf(result json.RawMessage) (number uint64, ok bool) {
	members, _ := jsonrpc.Object(result)
	placed := false // the number is that of the block that has the object
	for members.Next() {
		switch name := members.Name(); {
		case name.Is("blockNumber"):
			placed = true
		case !name.Is("number") || placed:
			continue
		}
		var err error
		number, err = decodeQuantity(members.Value())
		ok = err == nil
	}
	return number, ok
}

// ExistsCheck checks that an answer about a block that exists is not null.
func ExistsCheck(result json.RawMessage) error {
	if string(result) == "null" {
		return fmt.Errorf("%w: null for a block that exists", upstream.ErrPruned)
	}
	return nil
}

// BlockCheck returns a check that an answer is the block that was asked for.
func BlockCheck(b Block) func(json.RawMessage) error {
	return func(result json.RawMessage) error {
		got, err := forwarded.DecodeBlock(result)
		switch {
		case err != nil:
			return upstream.Unfit(err.Error())
		case got == nil:
			return ExistsCheck(result)
		case got.Number != b.Number:
			return fmt.Errorf("%w: asked for block %d, it sent block %d", upstream.ErrLie, b.Number, got.Number)
		case b.Hash != (common.Hash{}) && got.Hash != b.Hash:
			return fmt.Errorf("%w: asked for block %s, it sent %s", upstream.ErrLie, b.Ref(), got.Ref)
		}
		return nil
	}
}

// BlockContents are members of a block that examples are made from.
type BlockContents struct {
	Miner        common.Address `json:"miner"`
	Transactions []common.Hash  `json:"transactions"`
}

// Contents decodes a block of a view.
func Contents(b *forwarded.Block) (c BlockContents, err error) {
	if err := json.Unmarshal(b.JSON, &c); err != nil {
		return c, fmt.Errorf("decode block %s: %w", b.Ref, err)
	}
	return c, nil
}
