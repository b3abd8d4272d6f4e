package dashboard

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/netip"
	"time"

	"ashlar/account"
	"ashlar/account/usage"

	"github.com/alexedwards/scs/v2"
)

// Network is a chain that is served.
type Network struct {
	Name    string
	Family  string   // the name of its family
	Chain   string   // ID of the chain, as its people write it
	Hosts   []string // names at which it is served without its name in the path
	Methods []Method // that can be called over HTTP, sorted by name

	First    uint64 // the first block that is held
	Head     uint64
	HeadHash string // with 0x
	HeadTime time.Time
	Settled  uint64 // up to here no reorganization is possible
	Disk     int64  // bytes
	Follows  bool   // new blocks come from a node
	Behind   uint64 // blocks to catch up with the head that is followed
	Problem  string // why it is not followed at the moment; empty: it is
	Warning  string // what an operator has to do, such as to install a later version; may be empty

	History    string // continues "every block from N on", such as ", with its receipts"
	HeadResult string // the result of the call that the first snippet makes, as JSON
	// Snippets are lines to paste that ask for the newest block, the first of them for
	// curl. The password is empty if none is needed.
	Snippets func(url, password string) []Snippet
}

// Snippet is a text to paste for a tool.
type Snippet struct{ Tool, Text string }

// Method is a method that the console offers.
type Method struct {
	Name    string
	Summary string // what it does, in one sentence
	// Params returns params, as JSON, with which a call fits the network as it is.
	Params func(context.Context) (json.RawMessage, error)
}

// Caller answers JSON-RPC requests under the limits of a key, as if they had come over
// HTTP with it. The answer is read's until that returns.
type Caller func(ctx context.Context, call Call, read func(Answer))

// Call is a request that the console sends.
type Call struct {
	Network string
	Key     *account.Key
	Client  netip.Addr // on whose behalf
	Request []byte     // one JSON-RPC request or a batch
}

// Answer is what a client would have got.
type Answer struct {
	Status int // HTTP's
	Body   []byte
	Retry  time.Duration // after which a refusal may end; 0: never, or there was none
}

// Usage knows what was done with keys, as [usage.Usage] does.
type Usage interface {
	Read(context.Context, usage.Query) ([]usage.Line, error)
	LastUsed(context.Context, account.KeyID) (time.Time, error)
}

// Config is what a dashboard shows, and with what. All of it is needed but Log.
type Config struct {
	Accounts *account.Accounts
	Keys     *account.Keyring
	Sessions scs.CtxStore
	Usage    Usage
	Networks func(context.Context) ([]Network, error)
	Limits   func() []LimitGroup
	Call     Caller
	Log      *slog.Logger // nil: slog.Default()
}
