package proven

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"ashlar/evm/source/node"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// Asker asks the nodes, as [upstream.Pool] does.
type Asker interface {
	Ask(ctx context.Context, c upstream.Call) (upstream.Answer, error)
	AskAll(ctx context.Context, calls []upstream.Call) []upstream.Answer
}

// ErrNotFound means that no node has what was asked for. It is not proven: nodes may
// withhold it.
var ErrNotFound = node.ErrNotFound

// question is a call whose answer is checked.
type question struct {
	upstream.Call
	failed error // of making it
}

// newQuestion returns a call that reads something of a block.
func newQuestion(history upstream.History, number uint64, method string, params ...any) question {
	encoded, err := json.Marshal(params)
	return question{upstream.Call{Method: method, Params: encoded, History: history, About: number, Needs: number, Stored: true}, err}
}

// check is how an answer is decoded and checked. It returns a [*node.InvalidError] for an
// answer that no honest node gives, and ErrNotFound if the node does not have it.
type check[T any] func(answer json.RawMessage) (T, error)

// ask asks the nodes until one gives an answer that passes its check.
func ask[T any](ctx context.Context, r *Remote, q question, check check[T]) (value T, err error) {
	if q.failed != nil {
		return value, q.failed
	}
	taken := capture(&q.Call, check)
	answer, err := r.nodes.Ask(ctx, q.Call)
	if err != nil {
		return value, fmt.Errorf("%s: %w", q.Method, err)
	}
	return taken(answer.Result)
}

// capture sets the check of a call, and returns how to get the checked value of an answer.
func capture[T any](c *upstream.Call, check check[T]) func(json.RawMessage) (T, error) {
	var mu sync.Mutex
	var checked bool
	var value T
	c.Check = func(answer json.RawMessage) error {
		got, err := check(answer)
		if err != nil {
			return fault(err)
		}
		mu.Lock()
		defer mu.Unlock()
		value, checked = got, true
		return nil
	}
	return func(answer json.RawMessage) (T, error) {
		mu.Lock()
		defer mu.Unlock()
		if checked {
			return value, nil
		}
		return check(answer) // of a call that was made for somebody else
	}
}

// fault translates the error of a check for the pool.
func fault(err error) error {
	var lied *node.InvalidError
	switch {
	case errors.As(err, &lied):
		return fmt.Errorf("%w: %w", upstream.ErrLie, err)
	case errors.Is(err, ErrNotFound):
		return fmt.Errorf("%w (%w)", err, upstream.Unfit("the node does not have it"))
	}
	return err
}

// unchecked returns the error for an answer that cannot be checked, because what it is compared
// with could not be fetched. The node that gave it is not at fault, even if another one lied.
func unchecked(err error) error {
	why := upstream.Unfit("it cannot be checked")
	var lied *node.InvalidError
	if errors.As(err, &lied) {
		return fmt.Errorf("%w: %v", why, err)
	}
	return fmt.Errorf("%w: %w", why, err)
}

// lie returns the error for an answer that no honest node gives.
func lie(what string, format string, args ...any) error {
	return &node.InvalidError{What: what, Err: fmt.Errorf(format, args...)}
}

// decode decodes the answer to a method. null is ErrNotFound.
func decode[T any](method string, answer json.RawMessage) (value T, err error) {
	if string(answer) == "null" {
		return value, fmt.Errorf("%s: %w", method, ErrNotFound)
	}
	if err := json.Unmarshal(answer, &value); err != nil {
		return value, lie(method, "%w", err)
	}
	return value, nil
}

// blockHash is a block parameter (EIP-1898).
type blockHash struct {
	Hash common.Hash `json:"blockHash"`
}
