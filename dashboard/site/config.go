package site

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"ashlar/account"
	"ashlar/account/failures"
	"ashlar/account/oidc"
	"ashlar/account/usage"
	"ashlar/jsonrpc"

	"github.com/alexedwards/scs/v2"
)

// Network is a network that the service serves.
type Network struct {
	Name    string
	Family  string   // name of the network's family
	Chain   string   // chain ID, as it is usually written
	Hosts   []string // host names that serve only this network, without its name in the path
	Methods []Method // sorted by name

	// Unreadable is why the network's status cannot be read; empty if it can. Then Chain and all
	// that follows but Alert, Snippets and Programs are zero.
	Unreadable string

	First uint64 // the first stored block
	// FirstState is the first block with state, where that is not First.
	FirstState uint64
	// FirstProof is the first block whose state can be proven, where that is not the first with state.
	FirstProof uint64
	Head       uint64
	HeadTime   time.Time
	Settled    uint64        // blocks up to this one cannot be reorganized
	Disk       int64         // bytes
	Follows    bool          // it imports new blocks from a node
	Behind     uint64        // number of blocks behind the head of the node
	Rate       float64       // blocks per second while it is behind; 0 if not known
	Remaining  time.Duration // until it is at the head; 0 if not known
	Problem    string        // why it does not import new blocks at the moment; empty if it does
	Alert      string        // what else is wrong, for operators; may be empty
	Warning    string        // what an operator must do, such as install a later version; may be empty

	Upstreams []Upstream // the nodes that the network follows; for operators
	Consensus string     // the consensus client that drives the network, and when it last did; may be empty
	Store     Store      // for operators

	History    string // appended to "every block from N on", such as ", with its receipts"
	HeadResult string // the result of the first snippet's call, as JSON
	// Snippets returns example calls that ask for the newest block; the first one uses
	// curl. The password is empty if none is needed.
	Snippets func(url, password string) []Snippet
	// Programs returns programs that call a method with params, which are valid JSON, and
	// print the answer.
	Programs func(url, password, method string, params json.RawMessage) []Snippet
}

// Unserved is a stored network that is not served.
type Unserved struct {
	Name string
	Why  string // for operators
	// Missed says that it should be served: the configuration lists it, or its store does not open.
	Missed bool
}

// Upstream is a node that a network follows. Its faults are counted since the start.
type Upstream struct {
	Name     string
	Head     uint64
	Used     bool
	Why      string        // why it is not used, or how it differs from the others; may be empty
	Latency  time.Duration // 0 if not measured
	Failures uint64        // times that it did not answer
	Invalid  uint64        // answers that no honest node gives
}

// Event is something that happened.
type Event struct {
	Time  time.Time
	Level slog.Level
	Text  string
}

// Store is what a network's store uses.
type Store struct {
	Memory, Backlog        int64  // bytes; 0 if not known
	Free                   *int64 // bytes; nil if not known
	CacheHits, CacheMisses int64
}

// Snippet is an example call for one tool.
type Snippet struct{ Tool, Text string }

// Method is a method that the console offers and the documentation describes.
type Method struct {
	*jsonrpc.Method
	Credits    int  // price of a call on this server
	Restricted bool // only keys may call it whose rules list it
}

// Caller answers a JSON-RPC request under the limits of a key, as if it had come over HTTP.
// The answer is valid only until read returns.
type Caller func(ctx context.Context, call Call, read func(Answer))

// Call is a request that the console sends.
type Call struct {
	Network string
	Key     *account.Key
	Client  netip.Addr // address of the browser
	Request []byte     // one JSON-RPC request or a batch
}

// Answer is the HTTP answer that a client would get.
type Answer struct {
	Status int // HTTP status
	Body   []byte
	Retry  time.Duration // time until a rejected request may succeed; 0 if not rejected, or not known
}

// Usage reads recorded usage; [usage.Usage] implements it.
type Usage interface {
	Read(context.Context, usage.Query) ([]usage.Line, error)
	LastUsed(context.Context, account.KeyID) (time.Time, error)
}

// Failures keeps the last failed requests of each key; [failures.Log] implements it.
type Failures interface {
	Last(account.KeyID) []failures.Failure
	KeepParams(key account.KeyID, keep bool)
	ParamsUntil(account.KeyID) time.Time
}

// Config configures a dashboard. All fields except Log, Provider and Provided are required.
type Config struct {
	Accounts *account.Accounts
	Keys     *account.Keyring
	Sessions scs.CtxStore
	Usage    Usage
	Failures Failures
	Networks func(context.Context) ([]Network, error)
	Unserved func(context.Context) []Unserved
	// Events returns the last events of a network, newest first; of the service if the name is
	// empty.
	Events func(network string) []Event
	Limits func() []LimitGroup
	// Allowance returns the limits of credits that apply to a key.
	Allowance func(*account.Key) account.Allowance
	Call      Caller
	Status    func() bool // the status page is public
	// URL returns where users reach the dashboard, without a final slash; nil or empty: where the
	// visitor reaches it.
	URL func() string
	Log *slog.Logger // nil: slog.Default()

	Provider *oidc.Provider   // with which users sign in; nil: none
	Provided account.Provided // who gets an account by doing so
}

// LimitGroup is a group of related limits of the service.
type LimitGroup struct {
	Title  string
	Public bool // they concern clients, so the documentation lists them
	Limits []Limit
}

// Limit is one entry of the configuration with its current use.
type Limit struct {
	Entry   string
	Meaning string
	Most    string
	Now     string // empty if nothing is counted
}

// Method returns the method with a name, or nil if the network does not have it.
func (n *Network) Method(name string) *Method {
	if n == nil {
		return nil
	}
	i := slices.IndexFunc(n.Methods, func(m Method) bool { return m.Name == name })
	if i < 0 {
		return nil
	}
	return &n.Methods[i]
}

// State describes how up to date a network is.
func (n *Network) State() (text, mood string) {
	switch {
	case n.Unreadable != "":
		return "cannot be read", "bad"
	case n.Problem != "":
		return "not following", "bad"
	case n.Follows && n.Behind > 0:
		text = Amount(n.Behind, "block") + " behind"
		if n.Rate > 0 {
			text += ", " + Credits(n.Rate) + " blocks/s"
		}
		if n.Remaining > 0 {
			text += ", " + Duration(n.Remaining) + " remaining"
		}
		return text, "warn"
	case n.Follows:
		return "at the head", "good"
	}
	return "up to block " + Count(n.Head), ""
}
