package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"ashlar/chain"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// Forkchoice is a node's claim about its head, safe and finalized blocks. None of it is verified.
type Forkchoice struct {
	Head            chain.Ref
	Safe, Finalized chain.Ref // zero if the node does not provide them
}

// Identity fetches the properties that identify a chain, and forgets which features the node did not
// support.
func (c *Client) Identity(ctx context.Context) (chainID uint64, genesis common.Hash, err error) {
	var id hexutil.Uint64
	if err := c.call(ctx, &id, "eth_chainId"); err != nil {
		return 0, common.Hash{}, err
	}
	c.unsupported.forget() // the node behind the URL may have been replaced or upgraded
	genesis, err = c.HashAt(ctx, 0)
	return uint64(id), genesis, err
}

// Forkchoice fetches the head, safe and finalized blocks.
func (c *Client) Forkchoice(ctx context.Context) (Forkchoice, error) {
	tags := []string{"latest", "safe", "finalized"}
	answers := make([]json.RawMessage, len(tags))
	calls := make([]rpc.BatchElem, len(tags))
	for i, tag := range tags {
		calls[i] = rpc.BatchElem{Method: "eth_getBlockByNumber", Args: []any{tag, false}, Result: &answers[i]}
	}
	if err := c.batch(ctx, calls); err != nil {
		return Forkchoice{}, err
	}
	if err := calls[0].Error; err != nil {
		return Forkchoice{}, fmt.Errorf("the block %q: %w", tags[0], err)
	}
	head, err := decodeRef(answers[0])
	if err != nil {
		return Forkchoice{}, fmt.Errorf("the block %q: %w", tags[0], err)
	}
	forkchoice := Forkchoice{Head: head}
	for i, ref := range []*chain.Ref{&forkchoice.Safe, &forkchoice.Finalized} {
		if calls[i+1].Error != nil {
			continue // without finality there is no such block, and nodes report that in many ways
		}
		if *ref, err = decodeRef(answers[i+1]); err != nil && !errors.Is(err, ErrNotFound) {
			return Forkchoice{}, fmt.Errorf("the block %q: %w", tags[i+1], err)
		}
	}
	return forkchoice, nil
}

// HashAt fetches the hash of the block with a number.
func (c *Client) HashAt(ctx context.Context, number uint64) (common.Hash, error) {
	var answer json.RawMessage
	if err := c.call(ctx, &answer, "eth_getBlockByNumber", hexutil.Uint64(number), false); err != nil {
		return common.Hash{}, err
	}
	ref, err := decodeRef(answer)
	if err != nil {
		return common.Hash{}, fmt.Errorf("block %d: %w", number, err)
	}
	if ref.Number != number {
		return common.Hash{}, otherNumber(number, ref.Number)
	}
	return ref.Hash, nil
}

func otherNumber(asked, got uint64) error {
	return &InvalidError{What: fmt.Sprintf("block %d", asked), Err: fmt.Errorf("its number is %d", got)}
}

// decodeRef decodes the number and hash of a block in JSON.
func decodeRef(answer json.RawMessage) (chain.Ref, error) {
	var block *struct {
		Number *hexutil.Uint64 `json:"number"`
		Hash   *common.Hash    `json:"hash"`
	}
	if err := json.Unmarshal(answer, &block); err != nil {
		return chain.Ref{}, &InvalidError{What: "a block's number and hash", Err: err}
	}
	if block == nil {
		return chain.Ref{}, ErrNotFound
	}
	if block.Number == nil || block.Hash == nil {
		return chain.Ref{}, &InvalidError{What: "a block's number and hash", Err: errors.New("one of them is missing")}
	}
	return chain.Ref{Number: uint64(*block.Number), Hash: *block.Hash}, nil
}

// ErrNoSubscriptions means that the node does not support a subscription.
var ErrNoSubscriptions = errors.New("the node offers no such subscriptions")

// SubscribeHeads subscribes to new heads and calls notify with each, until ctx is done or the
// subscription ends. It returns the reason. All calls of notify are made by one goroutine, and
// must return soon.
func (c *Client) SubscribeHeads(ctx context.Context, notify func(head chain.Ref)) error {
	return c.subscribe(ctx, func(context.Context) error { return nil }, func(_ context.Context, announced json.RawMessage) error {
		ref, err := decodeRef(announced)
		if err != nil {
			return fmt.Errorf("an announced head: %w", err)
		}
		notify(ref)
		return nil
	}, "newHeads")
}

// subscribe creates a subscription, calls begun, and then notify with each message, until ctx
// is done, the subscription ends, too many messages wait for notify, or one of them fails. Their contexts
// end with the subscription.
func (c *Client) subscribe(ctx context.Context, begun func(context.Context) error, notify func(context.Context, json.RawMessage) error, to ...any) error {
	connecting, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	connection, err := c.connect(connecting)
	if err != nil {
		return err
	}
	messages := make(chan json.RawMessage)
	subscription, err := connection.EthSubscribe(connecting, messages, to...)
	if errors.Is(err, rpc.ErrNotificationsUnsupported) || refuses(err) {
		return fmt.Errorf("%w: %w", ErrNoSubscriptions, c.shown(err))
	}
	if err != nil {
		return fmt.Errorf("eth_subscribe: %w", c.shown(err))
	}
	defer subscription.Unsubscribe()
	waiting := newInbox(c.wait)
	receiving, end := context.WithCancelCause(ctx)
	var receiver sync.WaitGroup
	receiver.Go(func() { end(waiting.receive(receiving, subscription, messages)) })
	defer receiver.Wait()
	defer end(nil)
	err = begun(receiving)
	for err == nil {
		var message json.RawMessage
		if message, err = waiting.take(receiving); err == nil {
			err = notify(receiving, message)
		}
	}
	if ctx.Err() == nil && receiving.Err() != nil {
		return context.Cause(receiving) // err may be that it ended
	}
	return err
}

// errSubscription is used if go-ethereum's client gives no reason.
var errSubscription = errors.New("the connection was closed")
