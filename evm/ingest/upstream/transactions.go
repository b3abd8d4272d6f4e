package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/evm/source/node"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/core/types"
)

// errNoneToSend means that no node accepts connections for a transaction.
var errNoneToSend = errors.New("no upstream can be reached to pass the transaction on")

// Send sends a transaction in binary form to the node with the best head that judges it. A
// [*node.RefusedError] is that node's rejection, or if none does, the first one's reason not to. A
// node that gave no answer, or failed, may have taken the transaction and announced it, so it is sent if the
// next one knows it already. If no node judges it, the error is an [*upstream.UnconfirmedError].
func (p *Pursuit) Send(ctx context.Context, raw []byte) error {
	choices, _ := p.choices(time.Now())
	var lost error // of the first node that may have taken it
	unjudged := errNoneToSend
	for _, c := range choices {
		err := c.node.Send(ctx, raw)
		if err == nil {
			return nil
		}
		var refused *node.RefusedError
		if errors.As(err, &refused) {
			said := &upstream.NodeError{Code: refused.Code, Message: refused.Message}
			switch mayBeDone := upstream.MayBeDone(sending, said); {
			case lost != nil && upstream.IsKnown(said):
				return nil
			case !mayBeDone && !upstream.IsOfNode(sending, said):
				return err
			case mayBeDone && lost == nil:
				lost = said
			}
			if errors.Is(unjudged, errNoneToSend) {
				unjudged = err
			}
		} else if lost == nil && !errors.Is(err, node.ErrNotSent) {
			lost = err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.log.Warn("cannot send a transaction to the upstream", "error", err)
	}
	if lost != nil {
		return upstream.Unconfirmed(lost)
	}
	return unjudged
}

// sending is the method that sends a transaction.
const sending = "eth_sendRawTransaction"

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
			c.log.Warn("cannot read the upstream's transaction pool", "error", err, "again_in", wait.Round(time.Millisecond))
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
