package query

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"ashlar/forwarded"
	"ashlar/limit"
	"ashlar/upstream"

	"golang.org/x/sync/errgroup"
)

// claim is a question whose answer is recomputed. That keeps a processor busy, so it is not part of the question's Check.
type claim struct {
	Question
	// recompute decodes an answer, and returns why it cannot be used, as [upstream.Call.Check] does.
	recompute func(answer json.RawMessage) error

	call   upstream.Call
	answer upstream.Answer
	kept   bool // the answer was recomputed before
}

// askedAtOnce is how many questions of one request nodes are asked at the same time, while there is memory for the answers.
const askedAtOnce = 16

// verify asks the nodes about claims, and recomputes what they answer. It does these two in turn, because the request has a slot of
// heavy calls only while it recomputes (see [limit.Work]):
//
//	nodes      |--- ask a, b, c ---|                          |--- ask another node b ---|
//	processor                      |--- recompute a, b, c ---|                           |--- recompute b ---|
func (c *Chain) verify(ctx context.Context, view *forwarded.View, claims ...claim) error {
	open := make([]*claim, len(claims))
	for i := range claims {
		open[i] = &claims[i]
		open[i].call = c.call(view, &claims[i].Question)
	}
	for atOnce := min(askedAtOnce, len(open)); len(open) > 0; {
		held := limit.Borrow(ctx)
		got, left, err := c.gather(ctx, view, open, atOnce, &held)
		if err == nil && len(got) == 0 && atOnce == 1 {
			err = limit.ErrMemory
		}
		if err == nil && len(got) > 0 {
			err = limit.Work(ctx, func() error {
				held.Release() // as for what is not recomputed
				failed, err := c.recompute(got)
				open = append(failed, left...)
				return err
			})
		}
		held.Release()
		if err != nil {
			return err
		}
		if len(left) > 0 {
			atOnce = max(1, atOnce/2)
		}
	}
	for i := range claims {
		if one := &claims[i]; !one.kept {
			c.keep(ctx, view, &one.Question, one.answer.Result)
		}
	}
	return nil
}

// recompute returns the claims whose answers cannot be used. Other nodes can be asked about them.
func (c *Chain) recompute(claims []*claim) (failed []*claim, err error) {
	for _, one := range claims {
		why := upstream.Examine(one.answer.Result, one.recompute)
		switch {
		case why == nil:
		case one.kept:
			return nil, why
		default:
			c.pool.Reject(&one.call, one.answer, why)
			failed = append(failed, one)
		}
	}
	return failed, nil
}

// gather gets answers to claims, some of them at once. They count as memory of the account for which ctx is. Those claims are left for
// whose answers there is no memory beside the others, or that were not asked about because of that.
func (c *Chain) gather(ctx context.Context, view *forwarded.View, claims []*claim, atOnce int, held *limit.Lease) (got, left []*claim, err error) {
	err = limit.Yield(ctx, func() error {
		var mu sync.Mutex
		bytes := 0
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(atOnce)
		for _, one := range claims {
			group.Go(func() error {
				mu.Lock()
				full := len(left) > 0
				mu.Unlock()
				err := limit.ErrMemory
				if !full {
					err = c.get(ctx, view, one)
				}
				mu.Lock()
				defer mu.Unlock()
				if err == nil && !held.Hold(bytes+len(one.answer.Result)) {
					err = limit.ErrMemory
				}
				switch {
				case errors.Is(err, limit.ErrMemory):
					one.answer, one.kept = upstream.Answer{}, false
					left = append(left, one)
				case err != nil:
					return err
				default:
					bytes += len(one.answer.Result)
					got = append(got, one)
				}
				return nil
			})
		}
		return group.Wait()
	})
	return got, left, err
}

// get gets the answer to a claim: a kept one, or that of a node whose answer was not rejected.
func (c *Chain) get(ctx context.Context, view *forwarded.View, one *claim) (err error) {
	if one.answer.Node == "" {
		if one.answer.Result, one.kept, err = c.kept(ctx, view, &one.Question); err != nil || one.kept {
			return err
		}
	}
	if one.answer, err = c.pool.Ask(ctx, one.call); err != nil {
		return one.failed(view, err)
	}
	return nil
}
