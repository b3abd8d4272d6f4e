package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// What a Handler does where its Config leaves a value at zero.
const (
	DefaultBodyBytes   = 5 << 20
	DefaultRequestTime = 30 * time.Second
	DefaultMemory      = 1 << 30
	DefaultWaiting     = 1024
)

// MaxRequestTime is the longest that a request may be given.
const MaxRequestTime = 10 * time.Minute

// DefaultHeavy and DefaultLight are how many calls run at once. Heavy calls keep the
// processors busy, and more of them at once would only make each slower; light ones
// mostly wait for the disk.
func DefaultHeavy() int { return 2 * runtime.GOMAXPROCS(0) }

// heavyOfAccount is how many heavy calls of one account run at once where DefaultHeavy
// holds: one processor is left to others, whose short calls would wait behind every time
// slice of the long ones otherwise. The operator's own keys are not bounded.
func heavyOfAccount() int { return max(1, runtime.GOMAXPROCS(0)-1) }

// DefaultLight is DefaultHeavy's other half.
func DefaultLight() int { return 64 * runtime.GOMAXPROCS(0) }

// Config is what a [Handler] serves, and how.
type Config struct {
	Networks []Network
	// Hosts are patterns such as *.example.org: a network is served, without its path,
	// at the host that has the network's name in place of the *.
	Hosts []string
	Pages Pages
	Keys  Keys
	RPC   jsonrpc.Config // for every network
	// Origins are the origins whose pages may call, AnyOrigin for all; empty: none.
	Origins []string
	// Proxies are the networks of reverse proxies whose X-Forwarded-For is believed.
	Proxies []netip.Prefix
	Limits  Limits
	Sockets SocketLimits
	// Usage counts the requests of each key; nil: they are not counted.
	Usage *usage.Usage
	// Credits returns what a call of a method costs; nil: what its description says.
	Credits func(*jsonrpc.Method) int
	// Ready tells whether questions can be answered; nil: always. Its error is
	// logged, not shown.
	Ready func(context.Context) error
	Log   *slog.Logger // nil: slog.Default()
}

// Rates in credits a second that a server has where nothing else is set. They protect it
// from clients that no operator knows of; honest ones do not notice them. A limit that has
// its default value holds neither for local clients, which are those at loopback addresses
// and trusted proxies themselves, nor for the operator's own keys.
const (
	DefaultRate        = 20_000 // of a key
	DefaultAccountRate = 40_000
	DefaultAddressRate = 40_000
)

// Limits bound what requests may take. Zero values mean the defaults, or no limit for
// rates.
type Limits struct {
	BodyBytes   int           // of a request's body, before and after decompression
	RequestTime time.Duration // for a request's methods, waiting included
	Key         KeyLimits
	Account     KeyLimits  // of all keys of an account together
	Address     limit.Rate // credits of all requests from one address
	Failures    limit.Rate // of requests without a valid key, from one address
	Light       int        // calls that run at once, of cheap methods
	Heavy       int        // the same of methods that are not
	Waiting     int        // calls that wait for their turn, of each kind
	Memory      int64      // bytes that bodies and answers hold at once
	See         string     // where clients are told to read about limits
}

// KeyLimits are those of a key, or of an account. What the rules of an operator's key say,
// or the limits that an account has got, takes their place; what the owner of a key says
// counts where it is less.
type KeyLimits struct {
	Rate   limit.Rate // credits
	PerDay uint64     // credits; 0: no limit
}

// settings are a Config in use. They never change; a reload makes others.
type settings struct {
	networks    *networks
	pages       Pages
	origins     origins
	proxies     proxies
	requestTime time.Duration
	bodyBytes   int
	memory      *limit.Budget // the Handler's
	memoryBytes int64
	light       *limit.Pool
	heavy       *limit.Pool
	callers     callers
	addressRate limit.Rate
	clients     *limit.Addresses // by which addressRate is counted
	sockets     SocketLimits
	see         string
	ready       func(context.Context) error
	refusals    *refusals
}

func newSettings(config Config, h *Handler) (*settings, error) {
	l := config.Limits.withDefaults()
	if l.RequestTime > MaxRequestTime {
		return nil, fmt.Errorf("gateway: %v for a request: expected at most %v", l.RequestTime, MaxRequestTime)
	}
	if config.Credits == nil {
		config.Credits = func(m *jsonrpc.Method) int { return m.Cost.Credits }
	}
	if config.RPC.Log == nil {
		config.RPC.Log = h.log
	}
	config.RPC.Log = slog.New(exchangeLog{config.RPC.Log.Handler()})
	if err := config.Pages.check(); err != nil {
		return nil, err
	}
	s := &settings{
		pages: config.Pages, origins: config.Origins, proxies: config.Proxies,
		requestTime: l.RequestTime, bodyBytes: l.BodyBytes,
		memory: h.memory, memoryBytes: l.Memory, light: limit.NewPool(l.Light, l.Waiting), heavy: limit.NewPool(l.Heavy, l.Waiting),
		callers: callers{
			keys: l.Key, accounts: l.Account, days: &h.days, usage: config.Usage, byOwner: make(map[account.ID]*owner), byHolder: make(map[holder]*tenant),
		},
		addressRate: l.Address, clients: limit.NewAddresses(l.Address, maxAddresses),
		sockets: config.Sockets.withDefaults(), see: l.See, ready: config.Ready, refusals: &h.refusals,
	}
	if config.Limits.Heavy == 0 {
		s.callers.heavyOfAccount = heavyOfAccount()
	}
	for _, network := range config.Networks {
		for method := range network.Methods.All() {
			s.callers.most = max(s.callers.most, config.Credits(method))
		}
	}
	var err error
	s.networks, err = newNetworks(config.Networks, config.Hosts, config.RPC, gate{light: s.light, heavy: s.heavy, credits: config.Credits}, config.Usage)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (l Limits) withDefaults() Limits {
	for _, value := range []struct {
		field    *int
		standard int
	}{
		{&l.BodyBytes, DefaultBodyBytes}, {&l.Light, DefaultLight()}, {&l.Heavy, DefaultHeavy()}, {&l.Waiting, DefaultWaiting},
	} {
		if *value.field == 0 {
			*value.field = value.standard
		}
	}
	if l.RequestTime == 0 {
		l.RequestTime = DefaultRequestTime
	}
	if l.Memory == 0 {
		l.Memory = DefaultMemory
	}
	return l
}
