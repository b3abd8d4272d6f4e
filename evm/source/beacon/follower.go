// Package beacon follows the head of a beacon chain as a light client, over the beacon APIs of
// consensus clients that are not trusted. Package lightclient verifies what they say.
//
// All nodes are asked in every round and the newest header that is verified counts, so a node
// that lags or withholds headers holds nothing up while another does not. A node whose data is
// false is set aside. A node's statements about the chain itself, such as its forks, are used for that
// node's data only: see [lightclient.Chain] for why a wrong value makes signatures fail.
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
	"ashlar/retry"

	"github.com/ethereum/go-ethereum/common"
)

// oldCheckpoint is the age of a checkpoint with a warning: about the weak subjectivity period of
// mainnet. Validators that have left since can make up another chain without a loss.
const oldCheckpoint = 14 * 24 * time.Hour

// longestTry is the longest time after which nodes are asked for the next committee again; an
// epoch is usually shorter.
const longestTry = 10 * time.Minute

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

	// Run alone uses the fields below.
	nodes   []*asked
	store   *lightclient.Store // nil before the checkpoint's committee is known
	chain   *lightclient.Chain // as the node says that gave the store: times that are shown
	began   uint64             // slot of the checkpoint
	saved   uint64             // slot of the finalized block that was saved last
	named   engine.Forkchoice
	nextTry time.Time // when nodes are asked for the next committee again

	mu     sync.Mutex
	status Status // guarded by mu; without its nodes
}

// New returns a follower. It contacts no node before Run.
func New(config Config) *Follower {
	if config.Now == nil {
		config.Now = time.Now
	}
	f := &Follower{config: config, status: Status{Problem: "no beacon node has answered yet", Checkpoint: config.Checkpoint}}
	for _, n := range config.Nodes {
		f.nodes = append(f.nodes, &asked{Node: n, log: config.Log.With("beacon", n.name)})
	}
	return f
}

// Run follows the head until ctx is done.
func (f *Follower) Run(ctx context.Context) error {
	for {
		err := f.round(ctx)
		if ctx.Err() != nil {
			break
		}
		f.note(err)
		if retry.Sleep(ctx, f.pause()) != nil {
			break
		}
	}
	for _, n := range f.nodes {
		n.http.CloseIdleConnections()
	}
	return nil
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

// round brings the store up to date and names its head.
func (f *Follower) round(ctx context.Context) error {
	if f.store == nil {
		if err := f.begin(ctx); err != nil {
			return err
		}
	}
	gap, err := f.poll(ctx)
	if f.catchUp(ctx, gap) {
		_, err = f.poll(ctx)
	}
	if ctx.Err() != nil {
		return err
	}
	return cmp.Or(f.publish(ctx), err)
}

// begin makes the store from the block that was saved last, or from the checkpoint.
func (f *Follower) begin(ctx context.Context) error {
	saved, err := f.config.Keeper.Load(ctx)
	if err != nil {
		return fmt.Errorf("read the last finalized block: %w", err)
	}
	all := []Checkpoint{saved, {Root: f.config.Checkpoint}}
	if saved == (Checkpoint{}) {
		all = all[1:]
	}
	for _, from := range all {
		err = f.ask(ctx, fmt.Sprintf("bootstrap of block %#x", from.Root), func(ctx context.Context, n *asked) (bool, error) {
			b, err := n.bootstrap(ctx, from.Root)
			if errors.Is(err, errAbsent) {
				return false, fmt.Errorf("%w (want a finalized block, the first of its epoch, of the last months)", err)
			} else if err != nil {
				return false, err
			}
			store, err := lightclient.Begin(n.known, from.Root, b)
			if err != nil {
				return false, err
			}
			f.store, f.chain, f.began = store, n.known, b.Header.Beacon.Slot
			return true, nil
		})
		if err == nil {
			f.logBegin(from)
			return nil
		}
		if from.Slot > 0 {
			f.config.Log.Warn("the last finalized block cannot be continued from: using the configured checkpoint", "slot", from.Slot, "block", from.Root, "error", err)
		}
	}
	return err
}

// logBegin says with which block the light client begins.
func (f *Follower) logBegin(from Checkpoint) {
	f.saved = f.began
	now := f.config.Now()
	age := now.Sub(f.chain.TimeOf(f.began)).Round(time.Second)
	present := f.store.Period(f.present())
	periods := present - min(f.store.FinalizedPeriod(), present)
	log := f.config.Log.With("slot", f.began, "block", from.Root, "age", age, "periods_behind", periods)
	if age > oldCheckpoint {
		log.Warn("the light client begins with an old block: validators that have left since then could have made up another chain; configure a newer checkpoint")
		return
	}
	log.Info("the light client begins")
}

// catchUp fetches sync committees, one period after the other, and reports whether there were
// any. It does so if nodes have headers of later committees than are known, and once in an epoch
// for the next committee, which becomes final some epochs after its period began. No clock
// decides: the one of a node's chain may be false.
func (f *Follower) catchUp(ctx context.Context, gap bool) (caughtUp bool) {
	now := f.config.Now()
	if !gap && (f.store.KnowsNext() || now.Before(f.nextTry)) {
		return false
	}
	f.nextTry = now.Add(min(f.chain.SlotTime*time.Duration(f.chain.SlotsPerEpoch), longestTry))
	for ctx.Err() == nil {
		before := f.store.LastCommittee()
		err := f.ask(ctx, fmt.Sprintf("sync committee after that of period %d", before), func(ctx context.Context, n *asked) (bool, error) {
			return f.takeUpdate(ctx, n, before)
		})
		if err != nil {
			break
		}
		caughtUp = true
		f.config.Log.Info("the light client knows the sync committee", "period", f.store.LastCommittee())
	}
	return caughtUp
}

// takeUpdate takes over a node's update of a period. It reports whether the store knows another
// committee than before; a node that has none yet is not at fault.
func (f *Follower) takeUpdate(ctx context.Context, n *asked, period uint64) (bool, error) {
	u, err := n.update(ctx, period)
	if errors.Is(err, errAbsent) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	before := f.store.LastCommittee()
	err = f.store.Update(n.known, u, n.known.SlotAt(f.config.Now()))
	if errors.Is(err, lightclient.ErrNothingNew) {
		err = nil
	}
	return f.store.LastCommittee() > before, err
}

// poll asks all nodes for their latest updates. gap says that one is of a later committee than
// are known.
func (f *Follower) poll(ctx context.Context) (gap bool, err error) {
	err = f.askAll(ctx, func(ctx context.Context, n *asked) (updates []*lightclient.Update, err error) {
		for _, kind := range []string{"finality", "optimistic"} {
			u, err := n.latest(ctx, kind)
			if errors.Is(err, errAbsent) {
				continue // nothing is final yet, or nothing signed
			} else if err != nil {
				return nil, fmt.Errorf("%s update: %w", kind, err)
			}
			updates = append(updates, u)
		}
		return updates, nil
	}, func(n *asked, updates []*lightclient.Update) error {
		for _, u := range updates {
			f.see(func(*Status) { n.slot = max(n.slot, u.Attested.Beacon.Slot) })
			err := f.store.Update(n.known, u, n.known.SlotAt(f.config.Now()))
			gap = gap || errors.Is(err, lightclient.ErrGap)
			if err != nil && !errors.Is(err, lightclient.ErrNothingNew) {
				return err
			}
		}
		return nil
	})
	return gap, err
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

// publish names the head, and saves the finalized block, if they are new.
func (f *Follower) publish(ctx context.Context) error {
	head, finalized := f.store.Head(), f.store.Finalized()
	now, present := f.config.Now(), f.present()
	f.see(func(s *Status) {
		s.Head, s.Finalized, s.Slot = f.slot(head), f.slot(finalized), present
		s.PeriodsBehind = f.store.Period(present) - min(f.store.FinalizedPeriod(), f.store.Period(present))
	})
	if at := finalized.Beacon.Slot; at > f.saved {
		if err := f.config.Keeper.Save(ctx, Checkpoint{Root: finalized.Beacon.Root(), Slot: at}); err != nil {
			return fmt.Errorf("save the finalized block: %w", err)
		}
		f.saved = at
	}
	if head.Beacon.Slot <= f.began {
		return fmt.Errorf("no header after the checkpoint's slot %d is verified: %w", f.began, f.whyNone())
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
	f.see(func(s *Status) { s.Named = now })
	return nil
}

// slot returns a header as the status has it.
func (f *Follower) slot(h *lightclient.Header) Slot {
	return Slot{Number: h.Beacon.Slot, Time: f.chain.TimeOf(h.Beacon.Slot), Block: h.ExecutionHash()}
}
