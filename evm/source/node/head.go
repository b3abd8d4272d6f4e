package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/endpoint"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// Standing is which block a node says is what. All of it is hearsay.
type Standing struct {
	Head            chain.Ref
	Safe, Finalized chain.Ref // zero where the node does not say
}

// Identity asks for what tells one chain from another.
func (c *Client) Identity(ctx context.Context) (chainID uint64, genesis common.Hash, err error) {
	var id hexutil.Uint64
	if err := c.call(ctx, &id, "eth_chainId"); err != nil {
		return 0, common.Hash{}, err
	}
	c.noRaw.Store(false) // it may be another node by now, or another version
	c.noBatch.Store(false)
	genesis, err = c.HashAt(ctx, 0)
	return uint64(id), genesis, err
}

// Standing asks for the head, the safe and the finalized block.
func (c *Client) Standing(ctx context.Context) (Standing, error) {
	tags := []string{"latest", "safe", "finalized"}
	answers := make([]json.RawMessage, len(tags))
	calls := make([]rpc.BatchElem, len(tags))
	for i, tag := range tags {
		calls[i] = rpc.BatchElem{Method: "eth_getBlockByNumber", Args: []any{tag, false}, Result: &answers[i]}
	}
	if err := c.batch(ctx, calls); err != nil {
		return Standing{}, err
	}
	if err := calls[0].Error; err != nil {
		return Standing{}, fmt.Errorf("the block %q: %w", tags[0], err)
	}
	head, err := decodeRef(answers[0])
	if err != nil {
		return Standing{}, fmt.Errorf("the block %q: %w", tags[0], err)
	}
	standing := Standing{Head: head}
	for i, ref := range []*chain.Ref{&standing.Safe, &standing.Finalized} {
		if calls[i+1].Error != nil {
			continue // a chain without finality has no such block, and nodes have many ways to say so
		}
		if *ref, err = decodeRef(answers[i+1]); err != nil && !errors.Is(err, ErrNotFound) {
			return Standing{}, fmt.Errorf("the block %q: %w", tags[i+1], err)
		}
	}
	return standing, nil
}

// HashAt asks which block of its chain has a number.
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

// decodeRef reads the number and the hash of a block as an object.
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

// ErrNoSubscriptions says that the node does not tell by itself of what is new.
var ErrNoSubscriptions = errors.New("the node offers no such subscriptions")

// Watch tells every new head that the node announces, until ctx is done or the
// announcements end, with the error that ended them. told is called from one
// goroutine and must return soon.
func (c *Client) Watch(ctx context.Context, told func(head chain.Ref)) error {
	return c.subscribe(ctx, func() error { return nil }, func(announced json.RawMessage) error {
		ref, err := decodeRef(announced)
		if err != nil {
			return fmt.Errorf("an announced head: %w", err)
		}
		told(ref)
		return nil
	}, "newHeads")
}

// subscribe begins a subscription, calls begun, and then told with each message, until
// ctx is done, the subscription ends, or one of them fails.
func (c *Client) subscribe(ctx context.Context, begun func() error, told func(json.RawMessage) error, to ...any) error {
	connecting, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	connection, err := c.connect(connecting)
	if err != nil {
		return err
	}
	messages := make(chan json.RawMessage)
	subscription, err := connection.EthSubscribe(connecting, messages, to...)
	if errors.Is(err, rpc.ErrNotificationsUnsupported) || refuses(err) {
		return fmt.Errorf("%w: %w", ErrNoSubscriptions, err)
	}
	if err != nil {
		return fmt.Errorf("eth_subscribe: %w", endpoint.WithoutURL(err))
	}
	defer subscription.Unsubscribe()
	if err := begun(); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-subscription.Err():
			return fmt.Errorf("the subscription ended: %w", errors.Join(err, errSubscription))
		case message := <-messages:
			if err := told(message); err != nil {
				return err
			}
		}
	}
}

// errSubscription stands for the reason where go-ethereum's client gives none.
var errSubscription = errors.New("the connection was closed")
