package api

import (
	"context"

	"ashlar/jsonrpc"
	"ashlar/starknet"
	"ashlar/starknet/archive"
	"ashlar/starknet/blockhash"
	"ashlar/starknet/query"
)

// weaken records that an answer is what a node says if the hash of its block does not cover
// so much of the block.
func (a *API) weaken(ctx context.Context, header *archive.Header, needs blockhash.Coverage) (weakened bool) {
	if blockhash.CoverageOf(starknet.FeltOfText(a.chain.ID()), &header.Header) >= needs {
		return false
	}
	jsonrpc.Weaken(ctx, jsonrpc.Unverified)
	return true
}

// weakenHead is weaken for an answer about the head, which needs no more of it than a view has.
func (a *API) weakenHead(ctx context.Context, view *query.View) {
	if !jsonrpc.Verifies(ctx) {
		return
	}
	header, err := view.Header(ctx, view.Span().Last.Number)
	if err != nil {
		jsonrpc.Weaken(ctx, jsonrpc.Unverified)
		return
	}
	a.weaken(ctx, header, blockhash.CoversTransactions)
}

// pageCheck weakens the answer with a page for the blocks whose events it shows, and for those
// with which its range begins and ends.
type pageCheck struct {
	*eventView
	done  bool // it makes no difference any more
	begun bool
	last  uint64 // that was checked
}

func (v *eventView) checkPage(ctx context.Context) *pageCheck {
	return &pageCheck{eventView: v, done: !jsonrpc.Verifies(ctx)}
}

// visit checks a block, unless it was the last one.
func (c *pageCheck) visit(ctx context.Context, number uint64) error {
	if c.done || c.begun && c.last == number {
		return nil
	}
	c.begun, c.last = true, number
	header, err := c.view.Header(ctx, number)
	if err == nil {
		c.done = c.api.weaken(ctx, header, blockhash.CoversEvents)
	}
	return err
}
