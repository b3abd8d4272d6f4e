// Package beacon follows the head of a beacon chain as a light client, over the beacon APIs of
// consensus clients that are not trusted. Package lightclient verifies what they say.
//
// All nodes are asked all the time, each answer is used when it arrives, and the newest header that
// is verified counts, so a node that is slow, lags or withholds headers holds nothing up while
// another does not. A node whose data is false is set aside. What a node says about the chain
// itself, such as its forks, is used for that node's data only: see [lightclient.Chain] for what a
// wrong value does.
package beacon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"ashlar/evm/source/beacon/lightclient"
	"ashlar/evm/source/engine"

	"github.com/ethereum/go-ethereum/common"
)

// Checkpoint is a finalized block.
type Checkpoint struct {
	Root common.Hash
	Slot uint64 // 0 if it is not known
}

// Keeper keeps the last finalized block for the next start.
type Keeper interface {
	// Load returns the block that was saved last, zero if none was.
	Load(context.Context) (Checkpoint, error)
	Save(context.Context, Checkpoint) error
}

// Config configures a follower.
type Config struct {
	Nodes      []*Node
	Known      *lightclient.Chain // what the nodes must say of the chain; nil: anything
	Checkpoint common.Hash        // root of the trusted block
	Keeper     Keeper
	// Name is called with each new head. Its blocks are of the execution layer.
	Name func(context.Context, engine.Forkchoice) error
	Log  *slog.Logger
	Now  func() time.Time // nil: time.Now
}

// Follower follows the head.
type Follower struct {
	config Config

	asking  sync.WaitGroup // goroutines, at most one for a node
	answers chan answer

	// Run alone uses the fields below.
	nodes     []*asked
	store     *lightclient.Store // nil before the checkpoint's committee is known
	chain     *lightclient.Chain // as the node says that gave the store: times that are shown
	loaded    bool               // last is known
	last      Checkpoint         // that was saved before the start; zero: none was
	missing   time.Time          // since when last has been missing; zero: no node has said so
	began     uint64             // slot that a head must be after
	saved     uint64             // slot of the finalized block that was saved last
	named     engine.Forkchoice
	search    uint64    // number of the last search for a committee
	nextTry   time.Time // when the next search may begin
	searching int       // nodes that have not answered where a committee is
	searched  time.Time // when one was last asked

	mu     sync.Mutex
	status Status // guarded by mu; without its nodes
}

// New returns a follower. It contacts no node before Run.
func New(config Config) *Follower {
	if config.Now == nil {
		config.Now = time.Now
	}
	f := &Follower{config: config, answers: make(chan answer, len(config.Nodes)), status: Status{Problem: "no beacon node has answered yet", Checkpoint: config.Checkpoint}}
	for _, n := range config.Nodes {
		f.nodes = append(f.nodes, &asked{Node: n, log: config.Log.With("beacon", n.name)})
	}
	return f
}

// Run follows the head until ctx is done.
func (f *Follower) Run(ctx context.Context) error {
	defer func() {
		f.asking.Wait() // ctx ends their requests
		for _, n := range f.nodes {
			n.http.CloseIdleConnections()
		}
	}()
	next := time.NewTimer(0)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-next.C:
			f.round(ctx)
			next.Reset(f.pause())
		case a := <-f.answers:
			f.use(ctx, a)
		}
	}
}

// round asks the nodes that have nothing to answer.
func (f *Follower) round(ctx context.Context) {
	if !f.loaded {
		last, err := f.config.Keeper.Load(ctx)
		if err != nil {
			if ctx.Err() == nil {
				f.note(fmt.Errorf("read the last finalized block: %w", err))
			}
			return
		}
		f.last, f.loaded = last, true
	}
	f.askIdle(ctx)
}

// use takes an answer and names the head after it.
func (f *Follower) use(ctx context.Context, a answer) {
	f.take(ctx, a)
	var err error
	if f.store != nil {
		err = f.publish(ctx)
	}
	if ctx.Err() == nil {
		f.note(cmp.Or(err, f.none()))
	}
}

// pause is the time between two rounds: a quarter of a slot, within bounds, since a node says how
// long that is.
func (f *Follower) pause() time.Duration {
	const shortest, usual, longest = 250 * time.Millisecond, time.Second, 3 * time.Second
	if f.chain == nil {
		return usual
	}
	return max(shortest, min(f.chain.SlotTime/4, longest))
}

// present returns the present slot: the earliest that a node's chain has now, of those that are
// not before the head. A false one is shown, and decides nothing.
func (f *Follower) present() uint64 {
	now, head := f.config.Now(), f.store.Head().Beacon.Slot
	present := uint64(math.MaxUint64)
	for _, n := range f.nodes {
		if n.known != nil && n.known.SlotAt(now) >= head {
			present = min(present, n.known.SlotAt(now))
		}
	}
	if present == math.MaxUint64 {
		return head
	}
	return present
}

// publish names the head and saves the finalized block, if they are new. The head does not wait
// for a store that refuses to save: the next start just has more to verify.
func (f *Follower) publish(ctx context.Context) error {
	head, finalized := f.store.Head(), f.store.Finalized()
	present := f.present()
	f.see(func(s *Status) {
		s.Head, s.Finalized, s.Slot = f.slot(head), f.slot(finalized), present
		s.PeriodsBehind = f.store.Period(present) - min(f.store.FinalizedPeriod(), f.store.Period(present))
	})
	err := f.name(ctx, head, finalized)
	return cmp.Or(err, f.save(ctx, finalized))
}

func (f *Follower) name(ctx context.Context, head, finalized *lightclient.Header) error {
	if head.Beacon.Slot <= f.began {
		return fmt.Errorf("no header after slot %d, where the light client begins, is verified: %w", f.began, cmp.Or(f.none(), errors.New("the nodes name none")))
	}
	// Light clients do not see which block is justified, so the safe block is the final one.
	to := engine.Forkchoice{Head: head.ExecutionHash(), Safe: finalized.ExecutionHash(), Finalized: finalized.ExecutionHash()}
	if to == f.named {
		return nil
	}
	if err := f.config.Name(ctx, to); err != nil {
		return fmt.Errorf("name the head: %w", err)
	}
	f.named = to
	now := f.config.Now()
	f.see(func(s *Status) { s.Named = now })
	return nil
}

func (f *Follower) save(ctx context.Context, finalized *lightclient.Header) error {
	at := finalized.Beacon.Slot
	if at <= f.saved {
		return nil
	}
	if err := f.config.Keeper.Save(ctx, Checkpoint{Root: finalized.Beacon.Root(), Slot: at}); err != nil {
		return fmt.Errorf("save the finalized block: %w", err)
	}
	f.saved = at
	return nil
}

// slot returns a header as the status has it.
func (f *Follower) slot(h *lightclient.Header) Slot {
	return Slot{Number: h.Beacon.Slot, Time: f.chain.TimeOf(h.Beacon.Slot), Block: h.ExecutionHash()}
}
