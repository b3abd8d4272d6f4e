package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	"ashlar/forwarded"
	"ashlar/limit"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

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
	answer, err := c.wait(ctx, c.call(view, &q))
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
