package gateway

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"ashlar/account/usage"
	"ashlar/jsonrpc"
	"ashlar/limit"
)

// Network is a network that the gateway serves.
type Network struct {
	Name    string   // as in paths: lower-case letters, digits and hyphens
	Hosts   []string // host names, without ports, that serve this network without its name in the path
	Methods *jsonrpc.Methods
	// Restricted are methods, or prefixes followed by *, that a key may only call if its
	// rules list them.
	Restricted []string
	// Versions are other forms of the methods, served below the path of the usual ones at
	// /rpc/<version>.
	Versions map[string]*jsonrpc.Methods
	// OpenRPC returns the document that describes the methods; nil if none is served.
	OpenRPC func(context.Context) ([]byte, error)
	// Observer is notified of the network's calls, instead of the one in Config.RPC; it may
	// be nil.
	Observer jsonrpc.Observer
	// Users counts what uses the network: requests while its methods run, and subscriptions.
	// To close a network, Reload a configuration without it, and then close Users. Nil: not
	// counted.
	Users *limit.Users
}

// served is a network with its server.
type served struct {
	name    string
	server  *jsonrpc.Server
	openRPC func(context.Context) ([]byte, error) // its OpenRPC document; may be nil
	zipped  zippedDocument
	unknown usage.Series // series of requests that call no method
	gate    *gate
	users   *limit.Users

	versions map[string]*served // other forms of its methods
}

// at returns the network with its methods in a version, the usual one if it is empty. It
// returns nil if there is no such network or version.
func (s *served) at(version string) *served {
	if s == nil || version == "" {
		return s
	}
	return s.versions[version]
}

// networks finds the network of a request.
type networks struct {
	byName    map[string]*served
	byHost    map[string]*served // nil for the host of an absent network
	absent    map[string][]string
	wildcards map[string]bool // suffixes of the patterns in Config.Hosts, after the *, including the dot
	only      *served         // the network if it is the only one
}

var networkName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// reserved are first path segments that cannot be a network's name.
var reserved = map[string]bool{"v3": true, "ws": true, "healthz": true, "readyz": true, openRPCFolder: true}

// CheckNetworkName returns an error if name cannot be a network's name, which is part of
// paths.
func CheckNetworkName(name string) error {
	if !networkName.MatchString(name) || reserved[name] {
		return fmt.Errorf("invalid network name %q (want up to 63 lower-case letters, digits and hyphens, and none of v3, ws, healthz, readyz, openrpc)", name)
	}
	return nil
}

// CheckHost returns an error if a network cannot be served at host.
func CheckHost(host string) error {
	if !isHost(host) {
		return fmt.Errorf("invalid host %q (want a lower-case name or an address, without scheme and port)", host)
	}
	return nil
}

// CheckPattern returns an error if a pattern is none of hosts of networks.
func CheckPattern(pattern string) error {
	suffix, ok := strings.CutPrefix(pattern, "*.")
	if !ok || !isHost(suffix) {
		return fmt.Errorf("invalid pattern of hosts %q (want one such as *.example.org, where the * stands for a network's name)", pattern)
	}
	return nil
}

// newNetworks returns the networks of a configuration, whose calls pass a gate.
func newNetworks(config *Config, g gate) (*networks, error) {
	n := &networks{byName: make(map[string]*served), byHost: make(map[string]*served), absent: config.Absent, wildcards: make(map[string]bool)}
	for _, network := range config.Networks {
		if err := CheckNetworkName(network.Name); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
		if n.byName[network.Name] != nil {
			return nil, fmt.Errorf("gateway: two networks are named %s", network.Name)
		}
		serves := newServed(network, network.Methods, config, g)
		serves.versions = make(map[string]*served, len(network.Versions))
		for version, methods := range network.Versions {
			serves.versions[version] = newServed(network, methods, config, g)
		}
		n.byName[network.Name] = serves
		for _, host := range network.Hosts {
			if err := CheckHost(host); err != nil {
				return nil, fmt.Errorf("gateway: network %s: %w", network.Name, err)
			}
			if n.byHost[host] != nil {
				return nil, fmt.Errorf("gateway: network %s: the host %s is also another network's", network.Name, host)
			}
			n.byHost[host] = serves
		}
	}
	for _, own := range config.Absent {
		for _, host := range own {
			if _, taken := n.byHost[host]; !taken {
				n.byHost[host] = nil
			}
		}
	}
	for _, pattern := range config.Hosts {
		if err := CheckPattern(pattern); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
		n.wildcards[strings.TrimPrefix(pattern, "*")] = true
	}
	if len(config.Networks) == 1 {
		n.only = n.byName[config.Networks[0].Name]
	}
	return n, nil
}

// newServed serves some methods of a network.
func newServed(network Network, methods *jsonrpc.Methods, config *Config, g gate) *served {
	rpc := config.RPC
	g.network, g.restricted = network.Name, network.Restricted
	if network.Observer != nil {
		rpc.Observer = network.Observer
	}
	rpc.Parse, rpc.Unknown = g.parse, g.unknown
	g.series = func(string) usage.Series { return 0 }
	if config.Usage != nil {
		counts := newCounting(rpc.Observer, config.Usage, network.Name, methods)
		g.series, rpc.Observer = counts.of, counts
	}
	users := network.Users
	if users == nil {
		users = new(limit.Users)
	}
	return &served{name: network.Name, server: jsonrpc.NewServer(g.before(methods), rpc), openRPC: network.OpenRPC, unknown: g.series(""), users: users, gate: &g}
}

// isHost reports whether a host is in the normal form.
func isHost(host string) bool {
	return host != "" && host == hostname(host) && !strings.ContainsAny(host, "/@* ")
}

// find returns the network of a request, or nil. name is empty if the path has no network.
// A network's own host has precedence over a pattern, and both over the only network: the host of
// an absent network would otherwise get answers of another chain.
func (n *networks) find(name, host string) *served {
	switch {
	case name != "":
		return n.byName[name]
	case n.only != nil && len(n.absent) == 0:
		return n.only
	}
	host = hostname(host)
	if found, known := n.byHost[host]; known {
		return found
	}
	if dot := strings.IndexByte(host, '.'); dot > 0 && n.wildcards[host[dot:]] {
		found := n.byName[host[:dot]]
		if _, absent := n.absent[host[:dot]]; absent || found != nil {
			return found
		}
	}
	return n.only
}

// hostname returns the normal form of a Host header's name: lower case, without its port
// and a final dot.
func hostname(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// names lists the networks' names, sorted.
func (n *networks) names() []string { return slices.Sorted(maps.Keys(n.byName)) }
