package network

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"ashlar/evm/archive"
	"ashlar/evm/proven"
	"ashlar/evm/query"
	"ashlar/family"
	"ashlar/jsonrpc"
	"ashlar/kv"
	"ashlar/upstream"

	"golang.org/x/sync/errgroup"
)

// checkState is the value of the entry check: answers come from other nodes, and everything
// but the head is proven.
const checkState = "state"

// checked is a network whose blocks and state come from other nodes.
type checked struct {
	nodes  *upstream.Pool
	remote *proven.Remote
	head   *proven.Head
}

// openChecked opens a network whose blocks and state come from other nodes. Its store has
// the genesis only.
func openChecked(ctx context.Context, store kv.Store, entries *Entries) (*network, error) {
	first, err := loadGenesis(entries.Genesis)
	if err != nil {
		return nil, err
	}
	hash := first.ToBlock().Hash()
	config := rules(first, hash)
	nodes, err := upstream.New(upstream.Config{Nodes: entries.Upstream, ChainID: config.ChainID.Uint64(), Log: slog.Default()})
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	remote := proven.New(proven.Config{Nodes: nodes, Chain: config, Genesis: hash})
	a, err := settled(archive.OpenOver(ctx, store, remote))
	if err != nil {
		return nil, err
	}
	last, _ := a.Settled()
	if last.Number > 0 {
		return nil, fmt.Errorf("it has blocks up to %d: check: %s is for networks without blocks of their own", last.Number, checkState)
	}
	n, err := newNetwork(a, entries, config)
	if err != nil {
		return nil, err
	}
	if n.tip, err = proven.OpenTip(ctx, last); err != nil {
		return nil, err
	}
	n.chain = query.NewChain(a, n.tip, n.executor)
	n.chain.SetRemote(remote)
	head := proven.NewHead(remote, n.tip, proven.HeadConfig{Watcher: nodes, Quorum: entries.Quorum, Log: slog.Default()})
	n.checked = &checked{nodes: nodes, remote: remote, head: head}
	return n, nil
}

// run follows the head until ctx is done.
func (c *checked) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.nodes.Run(ctx) })
	group.Go(func() error { return c.head.Run(ctx) })
	return group.Wait()
}

// await returns when there is a first head.
func (c *checked) await(ctx context.Context) error {
	select {
	case <-c.head.Arrived():
		return nil
	default:
	}
	select {
	case <-c.head.Arrived():
		return nil
	case <-ctx.Done():
		why := c.head.Problem()
		if why == "" {
			why = "no node has answered"
		}
		return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "there is no head yet: " + why}
	}
}

// methods returns methods that wait for the first head, and say what of their answers is
// proven.
func (c *checked) methods(methods *jsonrpc.Methods) (*jsonrpc.Methods, error) {
	var all []jsonrpc.Method
	for method := range methods.All() {
		proven := *method
		proven.Handler = method.Handler.After(c.await).FoundOnly()
		proven.Verified = verification(method)
		all = append(all, proven)
	}
	return jsonrpc.NewMethods(all...)
}

// unproven are methods whose answers depend on the head, on the pool, or on when they were
// called before.
var unproven = []string{
	"eth_fillTransaction", "eth_getFilterChanges", "eth_newFilter", "eth_newPendingTransactionFilter",
	"eth_sendRawTransaction", "eth_sendRawTransactionSync", "eth_uninstallFilter", "txpool_contentFrom",
}

// verification returns how the answers of a method are verified. Which head is right cannot
// be proven, so neither can the answers of methods that name no block. Those without
// parameters are about the head or the server.
func verification(method *jsonrpc.Method) jsonrpc.Verification {
	if len(method.Params) == 0 || slices.Contains(unproven, method.Name) {
		return jsonrpc.Unverified
	}
	return jsonrpc.Proven
}

// status says how the nodes behave.
func (c *checked) status(quorum int, head uint64) *family.SourceStatus {
	status := &family.SourceStatus{Problem: c.head.Problem()}
	for _, n := range c.nodes.Status() {
		status.Best = max(status.Best, n.Head.Number)
		status.Reached = status.Reached || n.Usable
		status.Upstreams = append(status.Upstreams, family.UpstreamStatus{
			Name: n.Name, Head: n.Head.Number, Used: n.Usable, Why: n.Why,
			Latency: n.Latency.Microseconds(), Failures: n.Failures, Invalid: n.Lies,
		})
	}
	status.Behind = status.Best - min(status.Best, head)
	if quorum > 1 {
		status.Agreement = &family.AgreementStatus{Quorum: quorum}
		if status.Problem == "" {
			status.Agreement.Nodes = quorum
		}
	}
	return status
}

// checkCheck checks the entries of networks whose blocks and state come from other nodes.
func (e *Entries) checkCheck() error {
	switch {
	case e.Checked == "" && len(e.Upstream) == 0:
		return nil
	case e.Checked != checkState:
		return fmt.Errorf("unknown check %q (want %s, or a network of family forwarded)", e.Checked, checkState)
	case len(e.Upstream) == 0:
		return errors.New("check is for networks with an upstream: expected one")
	case e.Genesis == "":
		return fmt.Errorf("check: %s needs the genesis of the network", checkState)
	case len(e.Source) > 0 || e.Engine.Listen != "":
		return errors.New("upstream is for networks without a source and an engine: expected one of them")
	}
	return nil
}
