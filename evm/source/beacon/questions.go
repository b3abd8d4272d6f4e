package beacon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/evm/source/beacon/lightclient"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

const (
	// oldCheckpoint is the age of a checkpoint with a warning: about the weak subjectivity period
	// of mainnet. Validators that have left since can make up another chain without a loss.
	oldCheckpoint = 14 * 24 * time.Hour
	// fallBackTime is for how long no node may have the last finalized block before the client
	// falls back to an old checkpoint. It is longer than a node that failed is left alone.
	fallBackTime = 10 * time.Minute
	// longestTry is the longest time after which nodes are asked for the next committee again; an
	// epoch is usually shorter.
	longestTry = 10 * time.Minute
)

// bootstrap asks for the beginning: the block that was saved last, and the checkpoint if the node
// does not have it.
func (f *Follower) bootstrap(n *asked) question {
	last, checkpoint := f.last.Root, f.config.Checkpoint // neither changes any more
	return question{kind: forBootstrap, what: "bootstrap", get: func(ctx context.Context) (func() error, error) {
		if last != (common.Hash{}) {
			b, err := n.bootstrap(ctx, last)
			if err == nil {
				return func() error { return f.begin(n, last, b) }, nil
			} else if !errors.Is(err, errAbsent) {
				return nil, fmt.Errorf("block %#x: %w", last, err)
			}
		}
		b, err := n.bootstrap(ctx, checkpoint)
		if errors.Is(err, errAbsent) {
			return nil, fmt.Errorf("block %#x: %w (want a finalized block, the first of its epoch, of the last months)", checkpoint, err)
		} else if err != nil {
			return nil, fmt.Errorf("block %#x: %w", checkpoint, err)
		}
		return func() error { return f.begin(n, checkpoint, b) }, nil
	}}
}

// begin makes the store from a trusted block.
func (f *Follower) begin(n *asked, root common.Hash, b *lightclient.Bootstrap) error {
	if f.store != nil {
		return nil
	}
	store, err := lightclient.Begin(n.known, root, b)
	if err != nil {
		return err
	}
	slot := b.Header.Beacon.Slot
	if f.last.Slot > 0 && root != f.last.Root {
		if err := f.mayFallBack(slot); err != nil {
			return err
		}
		f.config.Log.Warn("no beacon node has the last finalized block: using the configured checkpoint", "slot", f.last.Slot, "block", f.last.Root)
	}
	f.store, f.chain = store, n.known
	// Nothing below a block that was final before is named or saved.
	f.began = max(slot, f.last.Slot)
	f.saved = f.began
	f.logBegin(root, slot)
	return nil
}

// mayFallBack returns an error unless the client may begin with the checkpoint, in a slot,
// although it has saved a later block. One node that hides that block must not reopen the time in
// which validators can have left. Ages count for known chains alone: else the clock is the node's.
func (f *Follower) mayFallBack(slot uint64) error {
	now := f.config.Now()
	if f.missing.IsZero() {
		f.missing = now
	}
	if known := f.config.Known; known != nil {
		if now.Sub(known.TimeOf(slot)) < oldCheckpoint || now.Sub(known.TimeOf(f.last.Slot)) >= oldCheckpoint {
			return nil
		}
	}
	if slot >= f.last.Slot || now.Sub(f.missing) >= fallBackTime {
		return nil
	}
	return fmt.Errorf("block %#x, the last finalized one: %w (the configured checkpoint is older: it is used if no node has had that block until %s)",
		f.last.Root, errAbsent, f.missing.Add(fallBackTime).UTC().Format(time.DateTime))
}

// logBegin says with which block the light client begins.
func (f *Follower) logBegin(root common.Hash, slot uint64) {
	age := f.config.Now().Sub(f.chain.TimeOf(slot)).Round(time.Second)
	present := f.store.Period(f.present())
	periods := present - min(f.store.FinalizedPeriod(), present)
	log := f.config.Log.With("slot", slot, "block", root, "age", age, "periods_behind", periods)
	if age > oldCheckpoint {
		log.Warn("the light client begins with an old block: validators that have left since then could have made up another chain; configure a newer checkpoint")
		return
	}
	log.Info("the light client begins")
}

// latest asks for the latest updates: those of the head and of the finalized block.
func (f *Follower) latest(n *asked) question {
	return question{kind: forLatest, what: "latest header", get: func(ctx context.Context) (func() error, error) {
		names := [2]string{"finality", "optimistic"}
		var updates [len(names)]*lightclient.Update
		group, ctx := errgroup.WithContext(ctx)
		for i, name := range names {
			group.Go(func() error {
				u, err := n.latest(ctx, name)
				if errors.Is(err, errAbsent) {
					return nil // nothing is final yet, or nothing signed
				} else if err != nil {
					return fmt.Errorf("%s update: %w", name, err)
				}
				updates[i] = u
				return nil
			})
		}
		err := group.Wait()
		return func() error { return f.takeLatest(n, updates[:]) }, err
	}}
}

// takeLatest takes over what is new in a node's latest updates.
func (f *Follower) takeLatest(n *asked, updates []*lightclient.Update) error {
	for _, u := range updates {
		if u == nil {
			continue
		}
		f.see(func(*Status) { n.slot = max(n.slot, u.Attested.Beacon.Slot) })
		err := f.store.Update(n.known, u, n.known.SlotAt(f.config.Now()))
		if err != nil && !errors.Is(err, lightclient.ErrNothingNew) {
			return err
		}
	}
	return nil
}

// wantsCommittee reports whether a node is asked for the next sync committee that is not known. It
// is if its own header is of a later one. Without that nodes are asked one after the other,
// once in an epoch: a committee becomes final some epochs after the period before it began. No
// clock decides: the one of a node's chain may be false.
//
// A node that has answered is asked next, so the quickest are first, and one that does not answer
// holds up the others for slowTime only.
func (f *Follower) wantsCommittee(n *asked, gap bool) bool {
	now := f.config.Now()
	if f.searching > 0 && now.Sub(f.searched) < slowTime {
		return false
	}
	if gap || f.store.KnowsNext() {
		return gap
	}
	if !now.Before(f.nextTry) {
		f.search++
		f.nextTry = now.Add(min(f.chain.SlotTime*time.Duration(f.chain.SlotsPerEpoch), longestTry))
	}
	return n.search != f.search
}

// committee asks for the first sync committee that is not known. A node whose header is of a
// later one must have it: until a committee's signature is verified, its slot is only a claim.
func (f *Follower) committee(n *asked, gap bool) question {
	period := f.store.LastCommittee()
	n.search = f.search
	f.searching++
	f.searched = f.config.Now()
	what := fmt.Sprintf("sync committee after that of period %d", period)
	return question{kind: forCommittee, what: what, get: func(ctx context.Context) (func() error, error) {
		u, err := n.update(ctx, period)
		if err != nil && !errors.Is(err, errAbsent) {
			return nil, err
		}
		return func() error { return f.takeCommittee(n, u, period, gap) }, nil
	}}
}

// errNoCommittee means that a node has a header of a later sync committee without those before it.
var errNoCommittee = errors.New("the node does not have it, but a header of a later one")

// takeCommittee takes over a node's update of a period, nil if it has none. A node without it is
// at fault only if it says to have a header of a later committee.
func (f *Follower) takeCommittee(n *asked, u *lightclient.Update, period uint64, gap bool) error {
	before := f.store.LastCommittee()
	if u != nil {
		err := f.store.Update(n.known, u, n.known.SlotAt(f.config.Now()))
		if err != nil && !errors.Is(err, lightclient.ErrNothingNew) {
			return err
		}
	}
	if last := f.store.LastCommittee(); last > before {
		f.nextTry = f.config.Now() // for the one after it
		f.config.Log.Info("the light client knows the sync committee", "period", last)
	} else if gap && last == period {
		return errNoCommittee
	}
	return nil
}
