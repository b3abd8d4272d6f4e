package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/evm/source/node"
)

// errNoneToSend says that there is nobody who could take a transaction.
var errNoneToSend = errors.New("no upstream can be reached to pass the transaction on")

// Send passes a transaction on, in its binary form, to the node with the best head
// that answers. A [*node.RefusedError] is that node's word on it.
func (p *Pursuit) Send(ctx context.Context, raw []byte) error {
	choices, _ := p.choices(time.Now())
	for _, c := range choices {
		err := c.node.Send(ctx, raw)
		var refused *node.RefusedError
		if err == nil || errors.As(err, &refused) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.log.Warn("upstream took no transaction", "because", err)
	}
	return errNoneToSend
}

// followPool tells of what waits in a node's pool, until ctx is done or it is known
// that the node does not offer that. What goes wrong here says nothing of its blocks.
// It begins once the chain is at a head, since whoever is told needs its state.
func (p *Pursuit) followPool(ctx context.Context, c *candidate) {
	select {
	case <-p.arrived:
	case <-ctx.Done():
	}
	retry := newBackoff(p.config.Pace.Retry, p.config.Pace.RetryMost)
	for ctx.Err() == nil {
		wait, err := p.readPool(ctx, c)
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, node.ErrNoPool) {
			c.log.Info("upstream does not tell of waiting transactions", "because", err)
			return
		}
		if err == nil {
			retry.Reset()
		} else {
			wait = retry.NextBackOff()
			c.log.Warn("upstream does not tell of waiting transactions for now", "because", err, "for", wait.Round(time.Millisecond))
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// readPool is told of transactions as they come, or else asks for all that wait, and
// says when to do so again.
func (p *Pursuit) readPool(ctx context.Context, c *candidate) (again time.Duration, err error) {
	err = c.node.SubscribePool(ctx, p.config.Waiting)
	if !errors.Is(err, node.ErrNoSubscriptions) {
		return 0, err
	}
	waiting, err := c.node.Pool(ctx)
	if err != nil {
		return 0, fmt.Errorf("txpool_content: %w", err)
	}
	for _, tx := range waiting {
		p.config.Waiting(tx)
	}
	return p.config.Pace.Pool, nil
}
