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
	"errors"
	"fmt"
	"log/slog"
	"regexp"
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

// Question is a call to be made at the nodes.
type Question struct {
	Method  string
	Params  string // JSON
	History upstream.History
	Block   Block  // that it is about, the last one of a range; the head if it is about none
	Before  uint64 // blocks before Block that it is about, too
	// Numbered are the params for nodes that take no block hash; empty: the same.
	Numbered string
	// Check returns why an answer cannot be used, see [upstream.Call.Check].
	Check func(result json.RawMessage) error
	// Fixed says that the answer depends on Params and on the chain up to the head, and on
	// nothing else.
	Fixed bool
	// Stored says that no error is an answer, see [upstream.Call.Stored].
	Stored bool
	// Found returns the block that the answer is about, if only the answer says it: null is
	// about none. Nil: it is about Block.
	Found func(result json.RawMessage) (number uint64, ok bool)
}

// Ask answers a question as of a view.
func (c *Chain) Ask(ctx context.Context, view *forwarded.View, q Question) (json.RawMessage, error) {
	if answer, ok, err := c.kept(ctx, view, &q); err != nil || ok {
		return answer, err
	}
	ask := c.wait
	if c.checked && q.Check != nil { // it keeps a processor busy while nodes are asked
		ask = c.pool.Ask
	}
	answer, err := ask(ctx, c.call(view, &q))
	if err != nil {
		return nil, q.failed(view, err)
	}
	c.keep(ctx, view, &q, answer.Result)
	return answer.Result, nil
}

// wait asks the nodes, while others may have the slot in which a call with long parameters was decoded.
func (c *Chain) wait(ctx context.Context, call upstream.Call) (answer upstream.Answer, err error) {
	err = limit.Yield(ctx, func() error {
		answer, err = c.pool.Ask(ctx, call)
		return err
	})
	return answer, err
}

// failed returns the error of a question that no node answered. Nodes that do not have an old block of the
// chain have removed it. Those that do not have a new one are late, or have changed to another branch.
func (q *Question) failed(view *forwarded.View, err error) error {
	var node *upstream.NodeError
	lacking := errors.As(err, &node) && upstream.LacksBlock(node)
	oldest := q.Block.Number - min(q.Before, q.Block.Number)
	switch recent := q.Found == nil && view.Head().Number-min(oldest, view.Head().Number) < upstream.Shallow; {
	case q.Block.Named != nil:
		return err
	case recent && (lacking || errors.Is(err, upstream.ErrPruned)):
		return fmt.Errorf("%w: %v", upstream.ErrUnavailable, err)
	case lacking:
		return fmt.Errorf("%w: %w", upstream.ErrPruned, err)
	}
	return err
}

// checkedMark marks questions whose answers were checked. It changes when a check becomes stricter: an answer that was kept
// before and fails it now would be refused each time, although the nodes have a right one.
const checkedMark = "\x00checked2"

// key is what the answer to a question is kept under. One that was checked has the hash that the
// block must have, if that is known: another answer must not be used in its place.
func (c *Chain) key(q *Question) string {
	key := q.Method + "\x00" + q.Params
	if c.checked && q.Check != nil {
		key += checkedMark + string(q.Block.Hash[:])
	}
	return key
}

// mayBeInvented reports whether an answer that passed its check may be about a block that is not
// on the chain: the block is named by its number only, and it was not followed.
func (c *Chain) mayBeInvented(q *Question) bool {
	return c.checked && q.Check != nil && q.Found == nil && q.Block.Hash == (common.Hash{})
}

// kept returns an answer that was kept, and false if there is none.
func (c *Chain) kept(ctx context.Context, view *forwarded.View, q *Question) (answer json.RawMessage, ok bool, err error) {
	if !q.Fixed {
		return nil, false, nil
	}
	key := c.key(q)
	if q.Found != nil || q.Block.Final && q.Block.Named == nil {
		if answer, ok, err := c.archive.Get(ctx, key); err != nil || ok {
			return answer, ok, err
		}
	}
	if q.Block.Named == nil {
		answer, ok = c.recent.Get(atHead(view, key))
	}
	return answer, ok, nil
}

// keep keeps an answer if it can be used again. A store that refuses it, because the disk is full,
// is no reason to refuse the answer.
func (c *Chain) keep(ctx context.Context, view *forwarded.View, q *Question, answer json.RawMessage) {
	if !q.Fixed || q.Block.Named != nil || string(answer) == "null" || c.mayBeInvented(q) {
		return
	}
	settled := q.Block.Final
	if q.Found != nil {
		number, ok := q.Found(answer)
		settled = ok && view.IsFinal(number)
	}
	key := c.key(q)
	if !settled {
		if len(answer) < recentBytes/16 {
			c.recent.Add(atHead(view, key), answer)
		}
		return
	}
	err := c.archive.Put(ctx, key, answer)
	if before := c.refuses.Swap(err != nil); err != nil && !before {
		c.log.Warn("answers are not kept: the store refuses them", "error", err)
	}
}

// atHead is the key of an answer that is kept while the head stays.
func atHead(view *forwarded.View, key string) string {
	head := view.Head().Hash
	return string(head[:]) + key
}

// call is a question as the nodes are asked it. A node must have the head of the view if the
// answer depends on it.
func (c *Chain) call(view *forwarded.View, q *Question) upstream.Call {
	call := upstream.Call{Method: q.Method, Params: json.RawMessage(q.Params), Needs: q.Block.Number, History: q.History, Check: q.Check, Stored: q.Stored}
	call.About = q.Block.Number - min(q.Before, q.Block.Number)
	if !q.Block.Final {
		call.AsOf = view.Head().Hash
	}
	if q.Found != nil || q.Block.Named != nil {
		call.Needs, call.History = view.Head().Number, upstream.NoHistory
	}
	if q.Numbered != "" {
		call.Numbered = json.RawMessage(q.Numbered)
	}
	return call
}

// changing matches methods that change something, such as eth_sendRawTransactionSync, or a node
// for developers.
var changing = regexp.MustCompile(`^(anvil|evm|hardhat)_|_(send|submit)`)

// Pass asks a question as it is, without knowing what it is about.
func (c *Chain) Pass(ctx context.Context, method, params string) (json.RawMessage, error) {
	answer, err := c.wait(ctx, upstream.Call{Method: method, Params: json.RawMessage(params), Once: changing.MatchString(method)})
	if answer.Result != nil {
		return answer.Result, nil // also if there is no slot to go on: it may have changed something
	}
	return nil, err
}

// sendTo is to how many nodes a transaction is sent.
const sendTo = 3

// Send sends a transaction to several nodes and returns the first answer.
func (c *Chain) Send(ctx context.Context, params string) (json.RawMessage, error) {
	var answer upstream.Answer
	err := limit.Yield(ctx, func() (err error) {
		answer, err = c.pool.Broadcast(ctx, upstream.Call{Method: "eth_sendRawTransaction", Params: json.RawMessage(params), Once: true}, sendTo)
		return err
	})
	if answer.Result != nil {
		return answer.Result, nil // also if there is no slot to go on: it was sent
	}
	return nil, err
}

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
