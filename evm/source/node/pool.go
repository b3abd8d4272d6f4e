package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"ashlar/endpoint"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// RefusedError is a node's reason for rejecting a transaction.
type RefusedError struct {
	Code    int
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// ErrNoPool means that the node does not provide access to its pool.
var ErrNoPool = errors.New("the node does not offer its pool")

// ErrNotSent means that a node did not get a transaction, because it could not be reached or refused the request.
var ErrNotSent = errors.New("the transaction was not sent")

// Send sends a transaction in its binary form to the node. A [*RefusedError] means that the
// node rejected it; after any other error except [ErrNotSent] it is unknown whether the node accepted it.
func (c *Client) Send(ctx context.Context, raw []byte) error {
	ctx, connected := endpoint.Traced(ctx)
	err := c.call(ctx, new(common.Hash), "eth_sendRawTransaction", hexutil.Bytes(raw))
	if err == nil {
		return nil
	}
	var refused rpc.Error
	if errors.As(err, &refused) {
		return &RefusedError{Code: refused.ErrorCode(), Message: refused.Error()}
	}
	if refuses(err) || isThrottled(err) || isUnsent(err) || c.overHTTP() && !connected() {
		return fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	return err
}

// Pool returns the transactions in the node's pool, without blobs and each sender's in the
// order of their nonces. It returns ErrNoPool if the node does not provide them.
func (c *Client) Pool(ctx context.Context) ([]*types.Transaction, error) {
	var content map[string]map[string]map[string]json.RawMessage // by pending or queued, sender and nonce
	err := c.call(ctx, &content, "txpool_content")
	if refuses(err) {
		return nil, fmt.Errorf("%w: %w", ErrNoPool, err)
	}
	if err != nil {
		return nil, err
	}
	var all []*types.Transaction
	for _, senders := range content {
		for _, byNonce := range senders {
			for _, one := range byNonce {
				if tx, ok := decodeWaiting(one); ok {
					all = append(all, tx)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b *types.Transaction) int { return cmp.Compare(a.Nonce(), b.Nonce()) })
	return all, nil
}

// decodeWaiting decodes a pending transaction. It returns false for an unknown transaction
// type, which nodes of other versions may have.
func decodeWaiting(object json.RawMessage) (*types.Transaction, bool) {
	tx := new(types.Transaction)
	return tx, tx.UnmarshalJSON(object) == nil
}

// SubscribePool calls notify with the contents of the node's pool, as returned by [Client.Pool],
// and then with every new transaction, until ctx is done or the subscription ends. It returns
// the reason: ErrNoSubscriptions if the node does not support it. All calls of notify are made
// by one goroutine.
func (c *Client) SubscribePool(ctx context.Context, notify func(*types.Transaction)) error {
	begun := func(ctx context.Context) error {
		waiting, err := c.Pool(ctx)
		if errors.Is(err, ErrNoPool) {
			return nil
		}
		for _, tx := range waiting {
			notify(tx)
		}
		return err
	}
	return c.subscribe(ctx, begun, func(ctx context.Context, announced json.RawMessage) error {
		var hash common.Hash
		if json.Unmarshal(announced, &hash) == nil { // the node does not support full transactions
			if err := c.call(ctx, &announced, "eth_getTransactionByHash", hash); err != nil && !refuses(err) {
				return err
			}
		}
		if tx, ok := decodeWaiting(announced); ok {
			notify(tx)
		}
		return nil
	}, "newPendingTransactions", true)
}
