package node

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// RefusedError is what a node says of a transaction that it does not take.
type RefusedError struct {
	Code    int
	Message string
}

func (e *RefusedError) Error() string { return e.Message }

// ErrNoPool says that the node does not tell what waits in its pool.
var ErrNoPool = errors.New("the node does not offer its pool")

// Send passes a transaction on, in its binary form. A [*RefusedError] says that the
// node does not take it, another error that it is not known whether it did.
func (c *Client) Send(ctx context.Context, raw []byte) error {
	err := c.call(ctx, new(common.Hash), "eth_sendRawTransaction", hexutil.Bytes(raw))
	var refused rpc.Error
	if errors.As(err, &refused) {
		return &RefusedError{Code: refused.ErrorCode(), Message: refused.Error()}
	}
	return err
}

// Pool asks for all that waits in the node's pool, each sender's transactions in the
// order of their nonces and blobs left out. ErrNoPool says that it does not tell.
func (c *Client) Pool(ctx context.Context) ([]*types.Transaction, error) {
	var content map[string]map[string]map[string]json.RawMessage // by standing, sender and nonce
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

// decodeWaiting reads a transaction that is not in a block yet. It is false for one
// of a kind that is not known here, which nodes of other versions may have.
func decodeWaiting(object json.RawMessage) (*types.Transaction, bool) {
	tx := new(types.Transaction)
	return tx, tx.UnmarshalJSON(object) == nil
}

// WatchPool tells of what waits in the node's pool, as [Client.Pool] has it, and then
// of every transaction that comes in, until ctx is done or the announcements end,
// with the error that ended them: ErrNoSubscriptions where there are none. told is
// called from one goroutine.
func (c *Client) WatchPool(ctx context.Context, told func(*types.Transaction)) error {
	begun := func() error {
		waiting, err := c.Pool(ctx)
		if errors.Is(err, ErrNoPool) {
			return nil
		}
		for _, tx := range waiting {
			told(tx)
		}
		return err
	}
	return c.subscribe(ctx, begun, func(announced json.RawMessage) error {
		var hash common.Hash
		if json.Unmarshal(announced, &hash) == nil { // the node does not know how to send it whole
			if err := c.call(ctx, &announced, "eth_getTransactionByHash", hash); err != nil && !refuses(err) {
				return err
			}
		}
		if tx, ok := decodeWaiting(announced); ok {
			told(tx)
		}
		return nil
	}, "newPendingTransactions", true)
}
