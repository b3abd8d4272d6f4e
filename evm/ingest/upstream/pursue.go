package upstream

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"ashlar/chain"
	"ashlar/evm/ingest"
	"ashlar/evm/source/node"
	"ashlar/history/tip"

	"github.com/ethereum/go-ethereum/core/types"
)

const (
	// bulkWorth is the minimum number of blocks for a bulk import.
	bulkWorth = 64
	// maxBulk is the maximum number of blocks imported before the best head is chosen
	// again.
	maxBulk = 16384
	// shownEvery is the number of blocks between updates of the head while catching up.
	shownEvery = 16
)

// choice is a usable node with its claims at the time of the choice.
type choice struct {
	*candidate
	forkchoice node.Forkchoice
}

// pursue follows the best head until ctx is done.
func (p *Pursuit) pursue(ctx context.Context) error {
	for ctx.Err() == nil {
		choices, next := p.choices(time.Now())
		var faulty bool
		if p.config.Quorum > 1 {
			choices, faulty = p.agree(ctx, choices)
		}
		again, err := p.tryEach(ctx, choices)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		p.config.Task.Succeeded()
		if !again && !faulty {
			p.idle(ctx, next)
		}
	}
	return nil
}

// idle waits until there may be something to do. next is when a suspended node may be used
// again, or zero.
func (p *Pursuit) idle(ctx context.Context, next time.Time) {
	var due <-chan time.Time
	if !next.IsZero() {
		timer := time.NewTimer(time.Until(next))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-p.changed:
	case <-due:
	case <-ctx.Done():
	}
}

// choices returns the usable nodes, best head first, and when the next node becomes usable.
func (p *Pursuit) choices(now time.Time) (choices []choice, next time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.nodes {
		switch {
		case !c.reachable:
		case !now.Before(c.until):
			choices = append(choices, choice{c, c.forkchoice})
		case next.IsZero() || c.until.Before(next):
			next = c.until
		}
	}
	ours := p.follower.Forkchoice().Head.Ref()
	slices.SortStableFunc(choices, func(a, b choice) int {
		if c := cmp.Compare(b.forkchoice.Head.Number, a.forkchoice.Head.Number); c != 0 || a.forkchoice.Head == b.forkchoice.Head {
			return c
		}
		switch ours { // of two equally high heads, prefer ours
		case a.forkchoice.Head:
			return -1
		case b.forkchoice.Head:
			return 1
		}
		return 0
	})
	return choices, next
}

// tryEach follows the first node that succeeds. again says that there is more to do
// immediately. An error is our own, not a node's.
func (p *Pursuit) tryEach(ctx context.Context, choices []choice) (again bool, err error) {
	var problem string
	for _, c := range choices {
		arrived, err := p.follow(ctx, c)
		if ctx.Err() != nil {
			return false, nil
		}
		if err == nil {
			p.praise(c.candidate)
			p.setProblem("")
			return !arrived, nil
		}
		if faultOf(err) == notTheirs {
			return false, err
		}
		p.blame(c.candidate, err, true)
		if problem == "" {
			problem = c.name + ": " + err.Error()
		}
		again = true // try again, as the node's state has changed
	}
	if problem != "" {
		p.setProblem(problem)
	}
	return again, nil
}

func (p *Pursuit) setProblem(problem string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problem = problem
}

// follow brings the chain to the head of a node, or part of the way if arrived is false.
func (p *Pursuit) follow(ctx context.Context, c choice) (arrived bool, err error) {
	known, err := p.follower.Has(ctx, c.forkchoice.Head)
	if err != nil {
		return false, err
	}
	switch {
	case known:
	case p.config.Quorum > 1:
		if err := p.bringAgreed(ctx, c); err != nil {
			return false, err
		}
	default:
		p.begin(c.forkchoice.Head)
		if arrived, err = p.bringIn(ctx, c); err != nil || !arrived {
			return arrived, err
		}
	}
	p.end()
	if err := p.move(ctx, c.forkchoice); err != nil {
		return true, err
	}
	p.first.Do(func() { close(p.arrived) })
	return true, nil
}

func (p *Pursuit) begin(head chain.Ref) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.under == nil {
		p.under = &pursued{starting: p.follower.Forkchoice().Head.Ref().Number}
	}
	p.under.head = head
}

func (p *Pursuit) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.under = nil
}

// bringIn imports the blocks up to the head of a node.
func (p *Pursuit) bringIn(ctx context.Context, c choice) (arrived bool, err error) {
	head, ours := c.forkchoice.Head, p.follower.Forkchoice().Head
	if head.Number <= ours.Settled().Number {
		return false, ErrTooDeep
	}
	if head.Number <= ours.Ref().Number+1 {
		// Nearly always the head is a child or sibling of our head.
		added, err := p.addOnly(ctx, c.node, head)
		if added || err != nil {
			return added, err
		}
	}
	var from chain.Ref
	err = p.within(ctx, func(ctx context.Context) (err error) {
		from, err = p.ancestor(ctx, c.node, head)
		return err
	})
	if err != nil {
		return false, err
	}
	target := chain.Ref{Number: p.follower.Depths().Due(head.Number, c.forkchoice.Finalized)}
	if finalized := c.forkchoice.Finalized; finalized.Number > target.Number && finalized.Number <= head.Number {
		target = finalized
	}
	if target.Number > ours.Ref().Number+bulkWorth {
		return false, p.bulk(ctx, c.node, target)
	}
	return true, p.ascend(ctx, c.node, from, head)
}

// addOnly adds a block if its parent is known.
func (p *Pursuit) addOnly(ctx context.Context, from Node, head chain.Ref) (added bool, err error) {
	block, err := from.Block(ctx, head.Hash)
	if err != nil {
		return false, answered(err)
	}
	err = p.follower.Add(ctx, block)
	if errors.Is(err, tip.ErrUnknownParent) {
		return false, nil
	}
	return err == nil, err
}

// ancestor finds the last block that our branch and a node's chain have in common. It must
// not be below the final block.
func (p *Pursuit) ancestor(ctx context.Context, of Node, head chain.Ref) (chain.Ref, error) {
	forkchoice := p.follower.Forkchoice()
	ours := forkchoice.Head
	low := ours.Settled().Number
	if at, ok := ours.At(forkchoice.Finalized.Number); ok && at == forkchoice.Finalized {
		low = at.Number
	}
	if head.Number <= low {
		return chain.Ref{}, ErrTooDeep
	}
	agrees := func(number uint64) (bool, error) {
		hash, err := of.HashAt(ctx, number)
		at, _ := ours.At(number)
		return hash == at.Hash, answered(err)
	}
	// Search back from the end in growing steps, since most branches are short, and then
	// bisect.
	number, differs := min(ours.Ref().Number, head.Number-1), head.Number
	for step := uint64(1); ; step *= 2 {
		same, err := agrees(number)
		if err != nil {
			return chain.Ref{}, err
		}
		if same {
			break
		}
		if number == low {
			return chain.Ref{}, ErrTooDeep
		}
		differs = number
		number -= min(step, number-low)
	}
	for number+1 < differs && differs <= ours.Ref().Number {
		middle := number + (differs-number)/2
		same, err := agrees(middle)
		if err != nil {
			return chain.Ref{}, err
		}
		if same {
			number = middle
		} else {
			differs = middle
		}
	}
	at, _ := ours.At(number)
	return at, nil
}

// bulk imports blocks from the settled block up to target, which will settle anyway. The
// hash of target may be zero.
func (p *Pursuit) bulk(ctx context.Context, from Node, target chain.Ref) error {
	settled := p.follower.Forkchoice().Head.Settled()
	if most := settled.Number + maxBulk; target.Number > most {
		target = chain.Ref{Number: most}
	}
	blocks := p.ranges(ctx, from, settled, target, nil)
	defer blocks.close()
	return p.settle(ctx, blocks)
}

// settle imports blocks that will settle anyway. It logs a reorganization if the head leaves its branch.
func (p *Pursuit) settle(ctx context.Context, blocks ingest.Source) error {
	before := p.follower.Forkchoice().Head.Refs()
	err := p.follower.Import(ctx, blocks, p.config.Task.Succeeded)
	p.follower.LogReorganization(ctx, p.config.Log, p.follower.Forkchoice().Head, before)
	return err
}

// ascend adds the blocks after one of ours, up to a node's head.
func (p *Pursuit) ascend(ctx context.Context, from Node, after, head chain.Ref) error {
	return p.ranges(ctx, from, after, head, nil).each(func(block *types.Block) error {
		if err := p.follower.Add(ctx, block); err != nil {
			return err
		}
		if number := block.NumberU64(); number%shownEvery == 0 {
			return p.follower.Advance(ctx, p.config.Log, chain.Ref{Number: number, Hash: block.Hash()})
		}
		return nil
	})
}

// move makes a node's head ours, unless ours descends from it, and adopts the node's safe
// and finalized blocks if they are on our branch.
func (p *Pursuit) move(ctx context.Context, s node.Forkchoice) error {
	forkchoice := p.follower.Forkchoice()
	branch := forkchoice.Head
	lags, err := p.follower.On(ctx, branch, s.Head)
	if err != nil {
		return err
	}
	if !lags {
		if branch, err = p.follower.Branch(s.Head.Hash); err != nil {
			return err
		}
	}
	final, err := p.follower.On(ctx, branch, forkchoice.Finalized)
	if err != nil {
		return err
	}
	if !final && forkchoice.Finalized != (chain.Ref{}) {
		return ErrTooDeep
	}
	safe, finalized, err := p.tags(ctx, branch, s, forkchoice)
	if err != nil {
		return err
	}
	if err := p.follower.SetHead(ctx, branch.Ref().Hash, safe, finalized); err != nil {
		return err
	}
	p.follower.LogReorganization(ctx, p.config.Log, branch, forkchoice.Head.Refs())
	return nil
}

// tags returns the safe and finalized blocks to set; zero means no change.
func (p *Pursuit) tags(ctx context.Context, branch *tip.Branch, s node.Forkchoice, before tip.Forkchoice) (safe, finalized chain.Ref, err error) {
	on := func(ref chain.Ref) bool {
		if err != nil || ref == (chain.Ref{}) || ref.Number > branch.Ref().Number {
			return false
		}
		var is bool
		is, err = p.follower.On(ctx, branch, ref)
		return is
	}
	final := before.Finalized
	if (final == (chain.Ref{}) || s.Finalized.Number > final.Number) && on(s.Finalized) {
		finalized, final = s.Finalized, s.Finalized
	}
	switch {
	case s.Safe.Number >= final.Number && on(s.Safe):
		safe = s.Safe
	case before.Safe == (chain.Ref{}) || before.Safe.Number >= final.Number && on(before.Safe):
		// as before
	case final != (chain.Ref{}):
		safe = final // the old safe block is not on the branch
	default:
		safe = branch.Settled()
	}
	return safe, finalized, err
}
