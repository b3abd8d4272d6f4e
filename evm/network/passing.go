package network

import (
	"context"

	"ashlar/evm/ingest"
	"ashlar/evm/ingest/upstream"
	"ashlar/evm/source/node"
	"ashlar/family"

	"golang.org/x/sync/errgroup"
)

// passing is what a network whose blocks another process writes does with its nodes: it
// sends them the transactions of its clients, and shows those that wait there. What the
// head is it does not learn from them.
type passing struct {
	supplier *upstream.Supplier
	clients  []*node.Client
	runPool  func(context.Context) error
}

// pass makes the network ready to pass transactions to its nodes. It does so while run runs.
func (n *network) pass(ctx context.Context, s family.Service) error {
	p := new(passing)
	config := upstream.Config{Follower: n.follower(ingest.DefaultDepths())}
	var err error
	if p.clients, err = n.connect(ctx, s, &config); err != nil {
		return err
	}
	p.runPool = n.newFollowedPool(s, &config)
	p.supplier = upstream.NewSupplier(config)
	p.supplier.Arrived()
	n.passing = p
	return nil
}

// run passes transactions on until ctx is done.
func (p *passing) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return p.supplier.Run(ctx) })
	group.Go(func() error { return p.runPool(ctx) })
	err := group.Wait()
	for _, client := range p.clients {
		client.Close()
	}
	return err
}
