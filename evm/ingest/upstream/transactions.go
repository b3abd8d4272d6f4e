package upstream

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ashlar/evm/source/node"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/core/types"
)

// errNoneToSend means that no node accepts connections for a transaction.
var errNoneToSend = errors.New("no upstream can be reached to pass the transaction on")

// Send sends a transaction in binary form to the node with the best head that judges it. A
// [*node.RefusedError] is that node's rejection, or if none does, the first one's reason not to. A
// node that gave no answer may have taken the transaction and announced it, so it is sent if the
// next one knows it already. If no node judges it, the error is an [*upstream.UnconfirmedError].
func (p *Pursuit) Send(ctx context.Context, raw []byte) error {
	choices, _ := p.choices(time.Now())
	var lost error // an answer
	unjudged := errNoneToSend
	for _, c := range choices {
		err := c.node.Send(ctx, raw)
		var refused *node.RefusedError
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refused) && !ofNode(refused):
			if lost != nil && strings.Contains(strings.ToLower(refused.Message), "already known") {
				return nil
			}
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if lost == nil && refused == nil && !errors.Is(err, node.ErrNotSent) {
			lost = err
		}
		if refused != nil && errors.Is(unjudged, errNoneToSend) {
			unjudged = err
		}
		c.log.Warn("send transaction to upstream failed", "error", err)
	}
	if lost != nil {
		return upstream.Unconfirmed(lost)
	}
	return unjudged
}

// ofNode reports whether a node refuses a transaction for a reason of its own.
func ofNode(refused *node.RefusedError) bool {
	return upstream.IsOfNode("eth_sendRawTransaction", &upstream.NodeError{Code: refused.Code, Message: refused.Message})
}

// followPool reports the transactions in a node's pool until ctx is done, or the node turns
// out not to support it. Failures here do not affect the use of the node's blocks. It
// starts once the chain has reached a head, since pending transactions are checked against
// its state.
func (p *Pursuit) followPool(ctx context.Context, c *candidate) {
	select {
	case <-p.arrived:
	case <-ctx.Done():
	}
	retry := newBackoff(p.config.Pace.Retry, p.config.Pace.RetryMax)
	for ctx.Err() == nil {
		wait, err := p.readPool(ctx, c)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, node.ErrNoPool) {
			c.log.Info("upstream does not serve its transaction pool", "error", err)
			return
		}
		if err == nil {
			retry.Reset()
		} else {
			wait = retry.NextBackOff()
			c.log.Warn("reading the transaction pool of upstream failed", "error", err, "for", wait.Round(time.Millisecond))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// readPool subscribes to transactions or, if that is not supported, polls the pool. It
// returns when to try again.
func (p *Pursuit) readPool(ctx context.Context, c *candidate) (again time.Duration, err error) {
	pass := func(tx *types.Transaction) {
		if ctx.Err() == nil { // a pool has thousands
			p.config.Waiting(ctx, tx)
		}
	}
	err = c.node.SubscribePool(ctx, pass)
	if !errors.Is(err, node.ErrNoSubscriptions) {
		return 0, err
	}
	waiting, err := c.node.Pool(ctx)
	if err != nil {
		return 0, fmt.Errorf("txpool_content: %w", err)
	}
	for _, tx := range waiting {
		pass(tx)
	}
	return p.config.Pace.Pool, nil
}
