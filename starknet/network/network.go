package network

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"ashlar/chain"
	"ashlar/family"
	"ashlar/history/rows"
	"ashlar/history/tip"
	"ashlar/jsonrpc"
	"ashlar/retry"
	"ashlar/starknet"
	"ashlar/starknet/api"
	"ashlar/starknet/archive"
	"ashlar/starknet/blockhash"
	"ashlar/starknet/ingest"
	"ashlar/starknet/query"
	"ashlar/starknet/source/node"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"
)

// network implements [family.Network].
type network struct {
	entries  *Entries
	archive  *archive.Archive
	follower *ingest.Follower // nil if another process writes to the store
	watched  *tip.Watched     // the unsettled blocks that another process writes; else nil
	chain    *query.Chain

	name    string
	source  source               // the nodes that are followed; nil for none
	layer1  source               // the same, also if another process follows them
	stopped atomic.Pointer[stop] // why they are not followed for now; nil while they are
	making  *retry.Task          // of the demo's blocks; nil in other networks

	hashes    *blockhash.Checker // of its blocks
	unchecked atomic.Uint64      // blocks whose hash cannot be recomputed
}

// stop is why and since when the node is not followed.
type stop struct {
	err   error
	since time.Time
}

// How long the network waits, at first and at most, before it tries a node again that
// cannot be followed until somebody repairs it.
const (
	shortRest   = 5 * time.Second // after an error of our own, such as a full disk
	firstRest   = time.Minute
	longestRest = 15 * time.Minute
)

// watchEvery is the time between two looks at what another process has written.
const watchEvery = 150 * time.Millisecond

// Serve implements [family.Network].
func (n *network) Serve(ctx context.Context, s family.Service) (*jsonrpc.Methods, error) {
	n.name = s.Name
	if len(n.entries.Source) > 0 {
		if err := n.connect(); err != nil {
			return nil, err
		}
	}
	if err := n.recallL1(ctx); err != nil {
		return nil, err
	}
	if n.watched != nil {
		if err := n.watched.Join(ctx); err != nil {
			return nil, err
		}
	}
	return n.methods(api.Usual())
}

// methods returns the methods of a version. If another process follows the network, answers
// agree with those of other readers.
func (n *network) methods(version api.Version) (*jsonrpc.Methods, error) {
	methods, err := api.New(n.chain, version).Methods()
	if err != nil || n.watched == nil {
		return methods, err
	}
	return methods.After(n.watched.Current)
}

// Versions implements [family.Versioned].
func (n *network) Versions() (map[string]*jsonrpc.Methods, error) {
	versions := make(map[string]*jsonrpc.Methods)
	for name, version := range api.Versions() {
		methods, err := n.methods(version)
		if err != nil {
			return nil, err
		}
		versions[name] = methods
	}
	return versions, nil
}

// connect makes the network ready to follow its nodes, unless another process does, and to
// ask them what is accepted on layer 1. It does so while Run runs.
func (n *network) connect() (err error) {
	id := starknet.FeltOfText(n.archive.ChainID())
	n.hashes = blockhash.New(id)
	n.layer1, err = newSource(n.entries, node.Options{ChainID: id, Logger: slog.With("network", n.name), Check: n.checkHash})
	if n.watched == nil && err == nil {
		n.source = n.layer1
	}
	return err
}

// Status implements [family.Network].
func (n *network) Status(ctx context.Context) (family.Status, error) {
	status := family.Status{Family: name, Chain: n.archive.ChainID()}
	if view := n.chain.View(); view != nil {
		span := view.Span()
		header, err := view.Header(ctx, span.Last.Number)
		if err != nil {
			return status, err
		}
		status.First, status.Head, status.HeadHash, status.HeadTime = span.First, header.Number, header.Hash.String(), header.Timestamp
		status.Settled = n.archive.Span().Last.Number
	}
	if stopped := n.making.Stopped(); stopped != nil {
		status.Stopped = &family.Stopped{Why: stopped.Err.Error(), Since: stopped.Since.Unix()}
	}
	if n.source != nil {
		status.Source = n.sourceStatus(status.Head)
		if stopped := n.stopped.Load(); stopped != nil {
			status.Stopped = &family.Stopped{Why: stopped.err.Error(), Since: stopped.since.Unix()}
		}
	}
	return status, nil
}

// checkHash checks the hash of a block of the node. It logs the first block whose hash
// it cannot check.
func (n *network) checkHash(block *starknet.Block) error {
	verdict, err := n.hashes.Check(block)
	if err == nil && verdict != blockhash.Confirmed && n.unchecked.Add(1) == 1 {
		slog.Warn("blocks are taken as the node sends them: their hashes cannot be recomputed", "network", n.name, "first", block.Number, "because", verdict)
	}
	return err
}

// Run implements [family.Network]. If its node cannot be followed, stored blocks are
// served all the same, and the node is tried again after a rest.
func (n *network) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	switch {
	case n.layer1 != nil:
		group.Go(func() error { n.watchL1(ctx); return nil })
	case n.watched != nil:
		group.Go(func() error { n.watchStoredL1(ctx); return nil })
	}
	switch {
	case n.watched != nil:
		group.Go(func() error { return n.watched.Run(ctx, watchEvery, slog.With("network", n.name)) })
	case n.source != nil:
		group.Go(func() error { return n.follow(ctx) })
	}
	return group.Wait()
}

// follow follows the network's nodes until ctx is done.
func (n *network) follow(ctx context.Context) error {
	for rest := firstRest; ; {
		err := n.source.Follow(ctx, n.entries.First, followed{n.follower, n})
		if ctx.Err() != nil {
			return nil
		}
		since := time.Now()
		if before := n.stopped.Load(); before != nil {
			since = before.since
		} else {
			rest = firstRest
		}
		wait, ours := rest, errors.As(err, new(ownError))
		if ours {
			wait = shortRest
		} else {
			rest = min(2*rest, longestRest)
		}
		said := n.stopped.Swap(&stop{err, since})
		if said == nil || !ours || said.err.Error() != err.Error() {
			slog.Error("the node is not followed for now; reads go on", "network", n.name, "again_in", wait, "error", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return nil
		}
	}
}

// ownError is an error for which no node is to blame, such as one of the store.
type ownError struct{ error }

func (e ownError) Unwrap() error { return e.error }

// own marks an error of the network's chain as ours, unless it comes from what the node's chain is.
func own(err error) error {
	if err == nil || errors.Is(err, ingest.ErrTooDeep) || errors.Is(err, rows.ErrNotNext) || errors.As(err, new(*archive.UnfitError)) {
		return err
	}
	return ownError{err}
}

// followed is the network's chain as its node's client sees it. It notes that the network
// follows again once a block was added, or there is none to add.
type followed struct {
	*ingest.Follower
	network *network
}

// Append adds a block.
func (f followed) Append(ctx context.Context, block *starknet.Block) error {
	err := f.Follower.Append(ctx, block)
	if err == nil {
		f.network.resumed()
		if block.Status == starknet.AcceptedOnL1 { // as recallL1 would find it after a restart
			f.network.chain.SetL1Accepted(block.Number)
		}
	}
	return own(err)
}

// Held returns the lowest and the highest block. It first settles blocks that could not be settled when they were
// added: without that, the network does not follow again.
func (f followed) Held(ctx context.Context) (first, head chain.Ref, ok bool, err error) {
	if err := f.Settle(ctx); err != nil {
		return first, head, false, own(err)
	}
	first, head, ok, err = f.Follower.Held(ctx)
	if err == nil && ok && f.network.source.head() == head {
		f.network.resumed()
	}
	return first, head, ok, own(err)
}

// Hash returns the hash of a block.
func (f followed) Hash(ctx context.Context, number uint64) (common.Hash, error) {
	hash, err := f.Follower.Hash(ctx, number)
	return hash, own(err)
}

// Revert removes all blocks above one.
func (f followed) Revert(ctx context.Context, ancestor chain.Ref) error {
	err := f.Follower.Revert(ctx, ancestor)
	if err == nil {
		f.network.chain.ForgetL1Above(ancestor.Number)
	}
	return own(err)
}

// resumed notes that the node is followed again.
func (n *network) resumed() {
	if before := n.stopped.Swap(nil); before != nil {
		slog.Info("the node is followed again", "network", n.name, "stopped_for", time.Since(before.since).Round(time.Millisecond))
	}
}

// Close implements [family.Network].
func (n *network) Close() error { return nil }
