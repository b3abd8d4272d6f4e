// Package ingest follows the head that upstream nodes name: it chooses among their heads,
// fetches the blocks that lead to the chosen one, and shows them as a [forwarded.View].
//
// A head is chosen if it is higher than the present one. A head that is not higher replaces
// it only when no usable node has the present one any more: at once if it has the same
// number, and after [Config.Patience] if it is lower. So a node that falls behind, or is
// started again, does not take clients back.
package ingest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/retry"
	"ashlar/upstream"
)

const (
	defaultKeep     = 256 // blocks of a view
	ancestors       = 32  // of the first head, so that a reorganization of that depth is understood
	defaultPatience = 30 * time.Second
)

// Config configures a follower. Zero values mean the defaults.
type Config struct {
	Pool     *upstream.Pool
	Quorum   int           // nodes that must have the same block as head or below it; default 1
	Keep     int           // blocks of a view
	Patience time.Duration // until a lower head is followed
	Task     *retry.Task
	Log      *slog.Logger
	// Check, if not nil, checks a block without its transactions, as a node sent it, and may replace its
	// JSON by what it has checked.
	Check func(*forwarded.Block) error
}

// Follower follows the head. It is safe for concurrent use.
type Follower struct {
	config Config

	mu      sync.Mutex
	view    *forwarded.View // guarded by mu; nil before the first head
	changed chan struct{}   // guarded by mu: closed and replaced when the view changes
	agreed  Agreement       // guarded by mu
	// Run alone uses the fields below.
	lost     time.Time // since when no node has the head; zero if one has
	disagree bool      // the nodes did not agree on a head last time
	election *upstream.Election
}

// Agreement is whether as many nodes agree on a head as must.
type Agreement struct {
	Nodes int       // nodes that agreed on the last head; 0: there is no agreement now
	Since time.Time // since when there is none; zero if there is
}

// New returns a follower.
func New(config Config) *Follower {
	config.Quorum, config.Keep = cmp.Or(config.Quorum, 1), cmp.Or(config.Keep, defaultKeep)
	config.Patience, config.Log = cmp.Or(config.Patience, defaultPatience), cmp.Or(config.Log, slog.Default())
	f := &Follower{config: config, changed: make(chan struct{}), agreed: Agreement{Since: time.Now()}}
	f.election = f.newElection()
	return f
}

// Agreement returns whether the nodes agree.
func (f *Follower) Agreement() Agreement {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.agreed
}

// View returns the present view, nil before the first head.
func (f *Follower) View() *forwarded.View {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.view
}

// Changed returns a channel that is closed when the view changes.
func (f *Follower) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Await returns the present view, and waits for the first one, unless all nodes are set aside.
func (f *Follower) Await(ctx context.Context) (*forwarded.View, error) {
	for {
		changed, asked := f.Changed(), f.config.Pool.Changed()
		if view := f.View(); view != nil {
			return view, nil
		}
		if err := f.config.Pool.Aside(); err != nil {
			return nil, err
		}
		select {
		case <-changed:
		case <-asked:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: no upstream has named a head yet", upstream.ErrUnavailable)
		}
	}
}

// Run follows until ctx is done.
func (f *Follower) Run(ctx context.Context) error {
	defer f.election.Wait()
	return f.config.Task.Keep(ctx, func(ctx context.Context) error {
		for {
			changed := f.config.Pool.Changed()
			if err := f.approach(ctx); err != nil {
				return err
			}
			f.config.Task.Succeeded()
			select {
			case <-changed:
			case <-f.election.Changed():
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// approach moves the view to the head of the nodes.
func (f *Follower) approach(ctx context.Context) error {
	nodes := slices.DeleteFunc(f.config.Pool.Status(), func(s upstream.Status) bool { return !s.Usable })
	if len(nodes) < f.config.Quorum {
		f.noteAgreement(0)
		return nil
	}
	elected, heads, open := f.elect(ctx, nodes)
	if ctx.Err() != nil || open {
		return nil
	}
	f.noteAgreement(len(heads))
	if f.logAgreement(len(heads) > 0); len(heads) == 0 {
		return nil
	}
	for {
		err := f.move(ctx, elected, heads)
		if err == nil || f.config.Quorum > 1 || ctx.Err() != nil {
			return err
		}
		// One node's word was enough, and the node does not have the blocks: the next one's counts.
		heads = slices.DeleteFunc(heads, func(h upstream.Head) bool { return h.Ref == elected })
		if len(heads) == 0 {
			return err
		}
		elected = highest(heads)
	}
}

// move moves the view to an elected head, if it is to be followed. heads are those of the nodes
// that have it.
func (f *Follower) move(ctx context.Context, elected chain.Ref, heads []upstream.Head) error {
	present := f.View()
	if !f.follows(present, elected, heads) {
		return f.stay(ctx, present, heads)
	}
	blocks, err := f.lead(ctx, present, elected)
	if err != nil {
		return err
	}
	safe, finalized := f.final(present, heads, blocks)
	f.show(forwarded.NewView(blocks, safe, finalized))
	return nil
}

// stay keeps the head of the view. It moves what is safe and finalized, and adds ancestors as long
// as the view has few blocks.
func (f *Follower) stay(ctx context.Context, present *forwarded.View, heads []upstream.Head) error {
	blocks := present.Blocks()
	safe, finalized := f.final(present, heads, blocks)
	if len(blocks) < ancestors && blocks[0].Number > 0 {
		var err error
		if blocks, err = f.extend(ctx, blocks); err != nil {
			return err
		}
	} else {
		safeBefore, _ := present.Safe()
		finalizedBefore, _ := present.Finalized()
		if safeBefore == safe && finalizedBefore == finalized {
			return nil
		}
	}
	f.show(forwarded.NewView(blocks, safe, finalized))
	return nil
}

// noteAgreement records how many nodes agree on a head.
func (f *Follower) noteAgreement(nodes int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case nodes > 0:
		f.agreed = Agreement{Nodes: nodes}
	case f.agreed.Nodes > 0:
		f.agreed = Agreement{Since: time.Now()}
	}
}

// logAgreement logs when the nodes cease to agree on a head, and when they agree again.
func (f *Follower) logAgreement(agree bool) {
	switch {
	case !agree && !f.disagree:
		f.config.Log.Warn("the head stays: the upstreams do not agree on one", "quorum", f.config.Quorum)
	case agree && f.disagree:
		f.config.Log.Info("the upstreams agree on a head again")
	}
	f.disagree = !agree
}

func (f *Follower) show(view *forwarded.View) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view = view
	close(f.changed)
	f.changed = make(chan struct{})
}

// follows reports whether the view is to be moved to an elected head. heads are those of the nodes
// that have it.
func (f *Follower) follows(present *forwarded.View, elected chain.Ref, heads []upstream.Head) bool {
	if present == nil {
		return true
	}
	head := present.Head()
	if elected.Number > head.Number {
		f.lost = time.Time{}
		return true
	}
	for _, h := range heads {
		if h.Number > head.Number || h.Hash == head.Hash {
			f.lost = time.Time{}
			return false
		}
	}
	if elected.Number == head.Number {
		return true
	}
	now := time.Now()
	if f.lost.IsZero() {
		f.lost = now
	}
	if now.Sub(f.lost) < f.config.Patience {
		return false
	}
	f.config.Log.Warn("no upstream has the head any more: following a lower one", "head", head.Number, "to", elected.Number)
	f.lost = time.Time{}
	return true
}

// final returns the numbers of the safe and the finalized block of a chain that ends with some
// blocks: the greatest that a quorum of the nodes has reached. The finalized one never goes back.
func (f *Follower) final(present *forwarded.View, heads []upstream.Head, blocks []*forwarded.Block) (safe, finalized uint64) {
	var safeBefore, finalBefore uint64
	head := blocks[len(blocks)-1].Number
	if present != nil {
		safeBefore, _ = present.Safe()
		finalBefore, _ = present.Finalized()
		safeBefore, finalBefore = min(safeBefore, head), min(finalBefore, head)
	}
	number := func(of func(upstream.Head) chain.Ref, before uint64) uint64 {
		var all []uint64
		for _, h := range heads {
			if named := of(h); isOf(named, blocks) {
				all = append(all, named.Number)
			} else {
				all = append(all, before)
			}
		}
		slices.Sort(all)
		return all[len(all)-f.config.Quorum]
	}
	safe = number(func(h upstream.Head) chain.Ref { return h.Safe }, safeBefore)
	finalized = max(finalBefore, number(func(h upstream.Head) chain.Ref { return h.Finalized }, finalBefore))
	return max(safe, finalized), finalized
}

// isOf reports whether a block is of the chain that ends with some blocks. One that is older than
// they are is: nodes do not disagree about it. One above them may be on another branch.
func isOf(ref chain.Ref, blocks []*forwarded.Block) bool {
	first := blocks[0].Number
	if ref.Number < first {
		return true
	}
	return ref.Number-first < uint64(len(blocks)) && blocks[ref.Number-first].Hash == ref.Hash
}

// errGap means that the blocks between two heads are more than a view has.
var errGap = errors.New("the head is too far away")

// lead returns the blocks of a view whose head is target: those of the present view as far as
// they are its ancestors, and those between.
func (f *Follower) lead(ctx context.Context, present *forwarded.View, target chain.Ref) ([]*forwarded.Block, error) {
	fresh, err := f.descend(ctx, present, target)
	var kept []*forwarded.Block
	switch {
	case errors.Is(err, errGap):
		f.config.Log.Warn("skipping blocks: the head is too far away", "head", present.Head().Number, "to", target.Number)
		fresh = fresh[:1]
	case err != nil:
		return nil, err
	case present != nil:
		parent, _ := present.Number(fresh[len(fresh)-1].Parent)
		kept = present.Blocks()[:parent+1-present.Blocks()[0].Number]
		if dropped := len(present.Blocks()) - len(kept); dropped > 0 {
			f.config.Log.Info("the upstreams' chain was reorganized", "fork", parent, "head", present.Head().Number, "depth", dropped)
		}
	}
	slices.Reverse(fresh)
	blocks := slices.Concat(kept, fresh)
	return blocks[max(0, len(blocks)-f.config.Keep):], nil
}

// extend adds ancestors before the blocks of a view.
func (f *Follower) extend(ctx context.Context, blocks []*forwarded.Block) ([]*forwarded.Block, error) {
	blocks = slices.Clone(blocks)
	for len(blocks) < ancestors && blocks[0].Number > 0 {
		b, err := f.fetch(ctx, blocks[0].ParentRef())
		if err != nil {
			return nil, err
		}
		blocks = slices.Insert(blocks, 0, b)
	}
	return blocks, nil
}

// descend fetches target and its ancestors, down to the first whose parent is in the view.
func (f *Follower) descend(ctx context.Context, present *forwarded.View, target chain.Ref) (blocks []*forwarded.Block, err error) {
	for next := target; ; {
		b, err := f.fetch(ctx, next)
		if err != nil {
			return blocks, err
		}
		blocks = append(blocks, b)
		if present == nil {
			return blocks, nil
		}
		if _, known := present.Number(b.Parent); known {
			return blocks, nil
		}
		if b.Number <= present.Blocks()[0].Number || len(blocks) == f.config.Keep {
			return blocks, errGap
		}
		next = b.ParentRef()
	}
}

// fetch asks for the block with a number and hash.
func (f *Follower) fetch(ctx context.Context, ref chain.Ref) (block *forwarded.Block, err error) {
	answer, err := f.config.Pool.Ask(ctx, upstream.Call{
		Method: "eth_getBlockByHash", Params: fmt.Appendf(nil, `["%#x",false]`, ref.Hash), Needs: ref.Number, History: upstream.Blocks, About: ref.Number, Stored: true,
		Check: func(result json.RawMessage) error { return f.check(result, ref) },
	})
	if err != nil {
		return nil, fmt.Errorf("block %s: %w", ref, err)
	}
	block, err = forwarded.DecodeBlock(answer.Result)
	if err == nil && f.config.Check != nil {
		err = f.config.Check(block)
	}
	return block, err
}

// check returns why an answer is not the block with a number and hash.
func (f *Follower) check(result json.RawMessage, ref chain.Ref) error {
	b, err := forwarded.DecodeBlock(result)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", upstream.ErrLie, err)
	case b == nil:
		return upstream.Unfit("the node does not have the block")
	case b.Hash != ref.Hash || b.Number != ref.Number:
		return fmt.Errorf("%w: asked for block %s, it sent %s", upstream.ErrLie, ref, b.Ref)
	case f.config.Check != nil:
		return f.config.Check(b)
	}
	return nil
}
