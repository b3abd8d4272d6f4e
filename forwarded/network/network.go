// Package network implements [family.Family] for forwarded networks: chains whose rules are
// not executed here, and whose answers come from other nodes.
package network

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ashlar/family"
	"ashlar/forwarded/api"
	"ashlar/forwarded/archive"
	"ashlar/forwarded/ingest"
	"ashlar/forwarded/query"
	"ashlar/history/audit"
	"ashlar/history/rewind"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/retry"
	"ashlar/upstream"

	"golang.org/x/sync/errgroup"
)

const name = "forwarded"

// Family implements [family.Family].
type Family struct{}

// Name implements [family.Family].
func (Family) Name() string { return name }

// Stores implements [family.Family].
func (Family) Stores() bool { return true }

// Implied implements [family.Implier]: a network with upstream nodes is forwarded unless its
// answers are to be proven.
func (Family) Implied(value func(entry string) (string, bool)) bool {
	_, upstream := value("upstream")
	check, _ := value("check")
	return upstream && check != checkState
}

// Begin implements [family.Opener].
func (Family) Begin(ctx context.Context, p family.Place, e family.Entries) error {
	if len(e.(*Entries).Upstream) == 0 {
		return nil
	}
	store, err := p.Open(kv.Options{Accept: func(r kv.Reader) error { return archive.Accept(ctx, r) }})
	if err != nil {
		return err
	}
	return errors.Join(archive.Create(ctx, store), store.Close())
}

// Accept implements [family.Opener].
func (Family) Accept(ctx context.Context, r kv.Reader) error { return archive.Accept(ctx, r) }

// Tables implements [family.Opener].
func (Family) Tables() []*kv.Table { return archive.Tables() }

// errNoUpstream means that a stored network is served without its nodes.
var errNoUpstream = fmt.Errorf("%w: its answers come from other nodes (want upstream)", family.ErrUnconfigured)

// Open implements [family.Opener].
func (Family) Open(ctx context.Context, store kv.Store, e family.Entries, reading bool) (family.Network, error) {
	n := &network{entries: e.(*Entries)}
	if len(n.entries.Upstream) == 0 {
		return nil, errNoUpstream
	}
	var err error
	if n.archive, err = archive.Open(ctx, store, int64(n.entries.Answers), reading); err != nil {
		return nil, err
	}
	stored, err := n.archive.ChainID(ctx)
	if err != nil {
		return nil, err
	}
	if wanted := n.entries.ChainID; wanted != 0 && stored != 0 && wanted != stored {
		return nil, fmt.Errorf("its stored answers are of chain %d, the configuration says %d", stored, wanted)
	}
	n.stored = stored
	return n, nil
}

var errNoBlocks = errors.New("its blocks come from other nodes, so there are no files to import")

// Flags and Import implement [family.Importer].
func (Family) Flags() []family.Flag { return nil }

// Import implements [family.Importer].
func (Family) Import(context.Context, family.Place, map[string]string) (family.Import, error) {
	return nil, errNoBlocks
}

// Verify implements [family.Verifier]. The stored answers are those of other nodes: nothing
// here says what is right.
func (Family) Verify(context.Context, kv.Store, family.Verification, *audit.Progress) (family.Verdict, error) {
	return nil, errors.New("its answers come from other nodes, so there is nothing to verify")
}

// Rewind implements [family.Rewinder].
func (Family) Rewind(context.Context, kv.Store, uint64, *audit.Progress) (rewind.Done, error) {
	return rewind.Done{}, errors.New("its blocks come from other nodes, so there is nothing to rewind")
}

// network implements [family.Network].
type network struct {
	entries  *Entries
	archive  *archive.Archive
	stored   uint64 // the chain's ID in the store; 0: none
	log      *slog.Logger
	pool     *upstream.Pool
	follower *ingest.Follower
	follow   *retry.Task
	chain    *query.Chain
	live     *api.API
	logTime  time.Duration // of eth_getLogs; 0: the default; tests set more
}

// Serve implements [family.Network].
func (n *network) Serve(_ context.Context, s family.Service) (*jsonrpc.Methods, error) {
	n.log = slog.With("network", s.Name)
	var err error
	n.pool, err = upstream.New(upstream.Config{Nodes: n.entries.Upstream, ChainID: cmp.Or(n.stored, n.entries.ChainID), Poll: n.entries.Poll, Log: n.log})
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	n.follow = retry.New("follow the upstream nodes", n.log)
	follow := ingest.Config{Pool: n.pool, Quorum: n.entries.Quorum, Task: n.follow, Log: n.log}
	checked := n.entries.Checked == checkHeaders
	if checked {
		follow.Check = query.CheckHead
	}
	n.follower = ingest.New(follow)
	n.chain = query.NewChain(n.pool, n.follower, n.archive, checked, n.log)
	n.live = api.New(n.chain, api.Config{
		ClientVersion: s.Version.Client, ChainID: n.pool.ChainID, Allowed: n.entries.Methods, Filters: s.Filters, Log: n.log, LogTime: n.logTime,
	})
	return n.live.Methods()
}

// Run implements [family.Network].
func (n *network) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return n.pool.Run(ctx) })
	group.Go(func() error { return n.follower.Run(ctx) })
	group.Go(func() error { return n.storeChainID(ctx) })
	group.Go(func() error {
		task := retry.New("keep the hashes of final blocks", n.log)
		return task.Keep(ctx, func(ctx context.Context) error { return n.chain.KeepLinks(ctx, task.Succeeded) })
	})
	group.Go(func() error { return n.live.Run(ctx) })
	return group.Wait()
}

// storeChainID stores the ID of the chain as soon as it is known, because the stored answers
// are of that chain.
func (n *network) storeChainID(ctx context.Context) error {
	if n.stored != 0 {
		return nil
	}
	task := retry.New("store the chain's ID", n.log)
	return task.Keep(ctx, func(ctx context.Context) error {
		for {
			changed := n.pool.Changed()
			if id := n.pool.ChainID(); id != 0 {
				if err := n.archive.SetChainID(ctx, id); err != nil {
					return err
				}
				n.log.Info("the chain is known", "chain_id", id)
				task.Succeeded()
				return nil
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return nil
			}
		}
	})
}

// Close implements [family.Network].
func (n *network) Close() error { return nil }

// Status implements [family.Network].
func (n *network) Status(context.Context) (family.Status, error) {
	status := family.Status{Family: name, ChainID: n.stored}
	if n.pool == nil { // it is not served
		return status, nil
	}
	status.ChainID = n.pool.ChainID()
	source := family.SourceOf(n.pool.Status(), n.entries.Quorum)
	if !source.Reached {
		source.Problem = "no upstream node is usable"
		if until := source.AsideUntil(); until != 0 {
			source.Problem = fmt.Sprintf("all upstream nodes are set aside because of false answers, the first until %s", time.Unix(until, 0).UTC().Format(time.RFC3339))
		}
	}
	if n.entries.Quorum > 1 {
		agreed := n.follower.Agreement()
		source.Agreement = &family.AgreementStatus{Quorum: n.entries.Quorum, Nodes: agreed.Nodes}
		if !agreed.Since.IsZero() {
			source.Agreement.Since = agreed.Since.Unix()
			source.Problem = cmp.Or(source.Problem, fmt.Sprintf("no agreement: %d nodes must have the same head", n.entries.Quorum))
		}
	}
	if stopped := n.follow.Stopped(); stopped != nil {
		status.Stopped = &family.Stopped{Why: stopped.Err.Error(), Since: stopped.Since.Unix()}
	}
	if view := n.follower.View(); view != nil {
		head := view.Head()
		status.Head, status.HeadHash, status.HeadTime = head.Number, head.Hash.Hex(), head.Time
		status.Settled, _ = view.Finalized()
		source.Behind = source.Best - min(source.Best, head.Number)
	}
	status.Source = source
	return status, nil
}
