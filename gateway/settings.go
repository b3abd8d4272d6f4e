package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"time"

	"ashlar/account"
	"ashlar/account/failures"
	"ashlar/account/usage"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// Defaults of a Config.
const (
	DefaultBodyBytes   = 5 << 20
	DefaultRequestTime = 30 * time.Second
	DefaultMemory      = 1 << 30
	DefaultWaiting     = 1024
)

// MaxRequestTime is the maximum of Limits.RequestTime.
const MaxRequestTime = 10 * time.Minute

// DefaultHeavy is the default number of heavy calls at once. They keep processors busy, so
// more of them would only slow each other down. Light calls mostly wait for the disk.
func DefaultHeavy() int { return 2 * runtime.GOMAXPROCS(0) }

// heavyOfAccount is the maximum number of heavy calls of one account at once if
// DefaultHeavy is in use. It leaves one processor to others, whose short calls would
// otherwise wait behind each time slice of the long ones. It does not apply to the
// operator's own keys.
func heavyOfAccount() int { return max(1, runtime.GOMAXPROCS(0)-1) }

// DefaultLight is the default number of light calls at once.
func DefaultLight() int { return 64 * runtime.GOMAXPROCS(0) }

// Config configures a [Handler].
type Config struct {
	Networks []Network
	// Absent are networks that are out of service: their names, with what their Hosts are while they are
	// served. Requests at their hosts are refused, also if only one network is served.
	Absent map[string][]string
	// Hosts are patterns such as *.example.org: a network is served, without its name in
	// the path, at the host with its name in place of the *.
	Hosts []string
	Pages Pages
	Keys  Keys
	RPC   jsonrpc.Config // shared by all networks
	// Origins are the allowed CORS origins; AnyOrigin means all, empty none.
	Origins []string
	// Proxies are the networks of reverse proxies whose X-Forwarded-For is trusted.
	Proxies []netip.Prefix
	Limits  Limits
	Sockets SocketLimits
	// Usage counts the calls of each key; nil: not counted.
	Usage *usage.Usage
	// Failures keeps the last failed requests of each key; nil: not kept.
	Failures *failures.Log
	// Group divides the limits of keys and accounts among the processes of a cluster; nil:
	// there are no others.
	Group *limit.Group
	// Credits returns the price of a method; nil: the price in its description.
	Credits func(*jsonrpc.Method) int
	// Ready returns an error if requests cannot be answered; nil: always ready. The error
	// is logged, not shown to clients.
	Ready func(context.Context) error
	// Unavailable says whether a method failed only because what it reads from cannot be
	// reached for now; nil: never. Such calls are refused, and cost nothing.
	Unavailable func(error) bool
	// Watcher is called with every answered request; nil: none. It must not keep what it is
	// given, and must be fast: the answer waits for it.
	Watcher Watcher
	Today   func() time.Time // which day it is, for daily quotas; nil: time.Now
	Log     *slog.Logger     // nil: slog.Default()
}

// Default rates in credits per second. They protect a server from clients that are unknown
// to its operator; honest clients do not reach them. A limit with its default value does
// not apply to local clients (those at loopback addresses, and trusted proxies themselves)
// or to the operator's own keys.
const (
	DefaultRate        = 20_000 // of a key
	DefaultAccountRate = 40_000
	DefaultAddressRate = 40_000
)

// Limits bound the resources of requests. Zero values mean the defaults, or no limit for
// rates.
type Limits struct {
	BodyBytes   int           // of a request's body, before and after decompression
	RequestTime time.Duration // for running a request's methods, including the time in queues
	Key         KeyLimits
	Account     KeyLimits  // of all keys of an account together
	Address     limit.Rate // credits of all requests from one address
	Failures    limit.Rate // of requests without a valid key, from one address
	Light       int        // calls of light methods at once
	Heavy       int        // calls of heavy methods at once
	Waiting     int        // waiting calls, of each kind
	Memory      int64      // bytes of bodies and answers in memory
	See         string     // URL about limits, included in errors
}

// KeyLimits are the limits of a key or an account. The rules of an operator's key, and the
// limits set for an account, override them. Rules set by the owner of a key can only lower
// them.
type KeyLimits struct {
	Rate   limit.Rate // credits
	PerDay uint64     // credits; 0: no limit
}

// settings are a Config in use. They are immutable; a reload replaces them.
type settings struct {
	networks    *networks
	pages       Pages
	origins     origins
	proxies     proxies
	requestTime time.Duration
	bodyBytes   int
	memory      *limit.Budget // shared with the Handler
	memoryBytes int64
	light       *limit.Pool
	heavy       *limit.Pool
	callers     callers
	addressRate limit.Rate
	clients     *limit.Addresses // counts addressRate
	sockets     SocketLimits
	see         string
	ready       func(context.Context) error
	watcher     Watcher
	today       func() time.Time // for daily quotas
	refusals    *refusals
	failures    *failures.Log
}

func newSettings(config Config, h *Handler) (*settings, error) {
	l := config.Limits.withDefaults()
	if l.RequestTime > MaxRequestTime {
		return nil, fmt.Errorf("gateway: request time %v is too long: expected at most %v", l.RequestTime, MaxRequestTime)
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
			keys: l.Key, accounts: l.Account, days: &h.days, group: config.Group, usage: config.Usage, byOwner: make(map[account.ID]*owner), byHolder: make(map[holder]*tenant),
		},
		addressRate: l.Address, clients: limit.NewAddresses(l.Address, maxAddresses),
		sockets: config.Sockets.withDefaults(), see: l.See, ready: config.Ready, watcher: config.Watcher, today: h.today, refusals: &h.refusals, failures: config.Failures,
	}
	s.callers.waitingLeaves = l.Light / 4
	if config.Limits.Heavy == 0 {
		s.callers.heavyOfAccount = heavyOfAccount()
	}
	for _, network := range config.Networks {
		for method := range network.Methods.All() {
			s.callers.most = max(s.callers.most, config.Credits(method))
		}
	}
	var err error
	s.networks, err = newNetworks(&config, gate{light: s.light, heavy: s.heavy, credits: config.Credits, unavailable: config.Unavailable})
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
