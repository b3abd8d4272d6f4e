package network

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ashlar/chain"
	"ashlar/evm/proven"
	"ashlar/evm/query"
	"ashlar/evm/source/beacon"
	"ashlar/evm/source/engine"
	"ashlar/family"
	"ashlar/jsonrpc"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"golang.org/x/sync/errgroup"
)

// checkState is the value of the entry check: answers come from other nodes, and everything
// but the head is proven.
const checkState = "state"

// checked is what a network has from nodes that answer, besides its archive.
type checked struct {
	nodes        *upstream.Pool
	head         *proven.Head    // of the nodes
	waiting      <-chan struct{} // closed when blocks of the archive may be shown without a head of the nodes; nil if never
	isRemoteHead func() bool     // the head is one that the nodes name
	// consensus names the head, if the network executes nothing and has an engine; else nil. api
	// is what it calls, once the network is served.
	consensus *proven.Consensus
	api       *engine.API
	light     *beacon.Follower // names the head instead; nil if there is no light client
	// runPool adapts the pool to every new head; nil if nodes that are followed take the
	// transactions, or none are taken.
	runPool func(context.Context) error
}

// firstHeadTime is how long a network with blocks of its own waits for the head of its nodes.
const firstHeadTime = 10 * time.Second

// nodeTime is how long a question of a network with blocks of its own waits for a node that can be
// asked. A call asks several questions one after the other, and has 5 seconds.
const nodeTime = time.Second

// complete has a network read from nodes what its archive does not have. If the network
// executes blocks, its tip is open; else the nodes have the head.
func (n *network) complete(ctx context.Context) error {
	settled, _ := n.archive.Settled()
	config := upstream.Config{Nodes: n.entries.Upstream, ChainID: n.config.ChainID.Uint64(), Log: n.log()}
	if settled.Number > 0 {
		config.Wait = nodeTime
	}
	nodes, err := upstream.New(config)
	if err != nil {
		return fmt.Errorf("upstream: %w", err)
	}
	first, err := n.archive.Header(ctx, 0)
	if err != nil {
		return err
	}
	remote := proven.New(proven.Config{Nodes: nodes, Chain: n.config, Genesis: first.Hash, Archive: n.archive})
	begin := settled
	if n.tip != nil { // the executed blocks need not be those of the nodes, until they say so
		begin = chain.Ref{Hash: first.Hash}
	}
	unexecuted, err := proven.OpenTip(ctx, begin)
	if err != nil {
		return err
	}
	n.chain.SetRemote(remote, unexecuted)
	head := proven.HeadConfig{Watcher: nodes, Quorum: n.entries.Quorum, Log: n.log()}
	if n.tip == nil {
		head.Base = settled
	} else {
		head.Settled = func() chain.Ref { settled, _ := n.archive.Settled(); return settled }
		head.Needed = func(number uint64) bool { return number > n.tip.Forkchoice().Head.Ref().Number+query.CatchUpBlocks }
	}
	n.checked = &checked{nodes: nodes, isRemoteHead: n.chain.HeadIsRemote}
	switch {
	case n.tip != nil:
	case n.entries.Engine.Listen != "":
		n.checked.consensus = proven.NewConsensus(remote, "consensus client")
		head.Consensus = n.checked.consensus
	case len(n.entries.LightClient.Nodes) > 0:
		head.Consensus = proven.NewConsensus(remote, "light client")
		if n.checked.light, err = n.openLight(first.Hash, head.Consensus); err != nil {
			return fmt.Errorf("light_client: %w", err)
		}
	}
	n.checked.head = proven.NewHead(remote, unexecuted, head)
	if settled.Number > 0 {
		waiting := make(chan struct{})
		time.AfterFunc(firstHeadTime, func() { close(waiting) })
		n.checked.waiting = waiting
	}
	return nil
}

// run follows the head until ctx is done.
func (c *checked) run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return c.nodes.Run(ctx) })
	group.Go(func() error { return c.head.Run(ctx) })
	if c.light != nil {
		group.Go(func() error { return c.light.Run(ctx) })
	}
	if c.runPool != nil {
		group.Go(func() error {
			if !c.begun(ctx) {
				return nil
			}
			return c.runPool(ctx)
		})
	}
	return group.Wait()
}

// begun waits until blocks may be shown, also while all nodes are set aside. It returns false if ctx is done before.
func (c *checked) begun(ctx context.Context) bool {
	select {
	case <-c.head.Arrived():
	case <-c.waiting:
	case <-ctx.Done():
		return false
	}
	return true
}

// sendTo is to how many nodes a transaction is sent.
const sendTo = 3

// send sends a transaction to several nodes. If none takes it, the client gets the error of one that refuses it, or
// is told that one may have taken it.
func (c *checked) send(ctx context.Context, raw []byte) error {
	params, err := json.Marshal([]hexutil.Bytes{raw})
	if err != nil {
		return err
	}
	_, err = c.nodes.Broadcast(ctx, upstream.Call{Method: "eth_sendRawTransaction", Params: params, Once: true}, sendTo)
	var refused *upstream.NodeError
	switch {
	case errors.Is(err, upstream.ErrKnown):
		return nil
	case errors.As(err, &refused) && upstream.Meaning(refused) == upstream.MeansAnswer:
		return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: refused.Message}
	case errors.Is(err, upstream.ErrUncertain):
		return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: upstream.Unconfirmed(err).Error()}
	case err != nil && ctx.Err() == nil:
		return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "no node took the transaction: " + upstream.ErrUnavailable.Error() + ": try again later"}
	}
	return err
}

// aside returns why nothing names a head: all nodes are set aside.
func (c *checked) aside() error {
	if c.light != nil {
		if err := c.light.Aside(); err != nil {
			return err
		}
	}
	return c.nodes.Aside()
}

// await returns when there is a first head. It does not wait while all nodes are set aside.
func (c *checked) await(ctx context.Context) error {
	for {
		changed := c.nodes.Changed()
		select {
		case <-c.head.Arrived():
			return nil
		default:
		}
		if err := c.aside(); err != nil && c.waiting == nil {
			return noHead(err.Error())
		}
		select {
		case <-c.head.Arrived():
			return nil
		case <-c.waiting:
			return nil
		case <-changed:
		case <-ctx.Done():
			return noHead(cmp.Or(c.problem(), "no node has answered"))
		}
	}
}

// problem returns why the head stays, "" if it follows.
func (c *checked) problem() string {
	if c.light != nil {
		if why := c.light.Status().Problem; why != "" {
			return why
		}
	}
	return c.head.Problem()
}

func noHead(why string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeServer, Message: "there is no head yet: " + why + ": try again later"}
}

// methods returns methods that wait for the first head, and say what of their answers is
// proven. They may wait for nodes.
func (c *checked) methods(methods *jsonrpc.Methods) (*jsonrpc.Methods, error) {
	var all []jsonrpc.Method
	for method := range methods.All() {
		checked := *method
		checked.Handler = c.verified(method)
		if !slices.Contains(headless, method.Name) {
			checked.Handler = checked.Handler.After(c.await)
			if checked.Cost.Weight == jsonrpc.LightWeight {
				checked.Cost = jsonrpc.Waiting(checked.Cost.Credits)
			}
		}
		all = append(all, checked)
	}
	return jsonrpc.NewMethods(all...)
}

// verified returns the handler of a method. Package query says which answers rest on blocks of
// nodes. If the head is one of theirs, answers without a block rest on what they say.
func (c *checked) verified(method *jsonrpc.Method) jsonrpc.Handler {
	own, found := method.Handler, method.Handler.FoundOnly()
	unverified := isUnverified(method)
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		if c.isRemoteHead() {
			if unverified {
				jsonrpc.Weaken(ctx, jsonrpc.Unverified)
			}
			return found(ctx, params, out)
		}
		result, err := own(ctx, params, out)
		if c.isRemoteHead() { // since the call began
			jsonrpc.Weaken(ctx, jsonrpc.Unverified)
		}
		return result, err
	}
}

// headless are methods that need no head.
var headless = []string{
	"eth_accounts", "eth_chainId", "net_listening", "net_peerCount", "net_version", "rpc_modules", "web3_clientVersion", "web3_sha3",
}

// unproven are methods whose answers depend on the head, on the pool, or on when they were
// called before.
var unproven = []string{
	"eth_fillTransaction", "eth_getFilterChanges", "eth_newFilter", "eth_newPendingTransactionFilter",
	"eth_sendRawTransaction", "eth_sendRawTransactionSync", "eth_uninstallFilter", "txpool_contentFrom",
}

// isUnverified reports whether the answers of a method rest on a head that nodes name. Which
// head is right cannot be proven, so neither can the answers of methods that name no block.
// Those without parameters are about the head or the server.
func isUnverified(method *jsonrpc.Method) bool {
	return len(method.Params) == 0 || slices.Contains(unproven, method.Name)
}

// status says how the nodes behave.
func (c *checked) status(quorum int, head uint64) *family.SourceStatus {
	status := family.SourceOf(c.nodes.Status(), quorum)
	status.Problem = c.problem()
	status.Behind = status.Best - min(status.Best, head)
	if quorum > 1 {
		status.Agreement = &family.AgreementStatus{Quorum: quorum, Since: family.Seconds(c.head.Since())}
		if status.Agreement.Since == 0 {
			status.Agreement.Nodes = quorum
		}
	}
	return status
}

// joinSources returns how the nodes that are followed behave, with those that answer. A node that does both is
// there twice, under two names: they are labels of metrics, and one series twice makes all metrics fail.
func joinSources(followed, answering *family.SourceStatus) *family.SourceStatus {
	if followed == nil || answering == nil {
		return cmp.Or(followed, answering)
	}
	followed.Problem = cmp.Or(followed.Problem, answering.Problem)
	for _, u := range answering.Upstreams {
		if slices.ContainsFunc(followed.Upstreams, func(f family.UpstreamStatus) bool { return f.Name == u.Name }) {
			u.Name += " (upstream)"
		}
		followed.Upstreams = append(followed.Upstreams, u)
	}
	return followed
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
	}
	return nil
}
