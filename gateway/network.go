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
)

// Network is a chain that requests can be for.
type Network struct {
	Name    string   // as in its path: lower-case letters, digits and hyphens
	Hosts   []string // names, without ports, at which it is served without its path
	Methods *jsonrpc.Methods
	// OpenRPC returns the document that describes the methods; nil: none is served.
	OpenRPC func(context.Context) ([]byte, error)
	// Observer is notified of the network's calls, in place of the one in Config.RPC;
	// it may be nil.
	Observer jsonrpc.Observer
}

// served is a network and what answers for it.
type served struct {
	name    string
	server  *jsonrpc.Server
	openRPC func(context.Context) ([]byte, error) // its OpenRPC document; may be nil
	unknown usage.Series                          // as which requests are counted that call no method
}

// networks finds what a request is for.
type networks struct {
	byName    map[string]*served
	byHost    map[string]*served
	wildcards map[string]bool // what follows the * and the network's name in Config.Hosts, its dot included
	only      *served         // the network, where there is but one
}

var networkName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// reserved are first segments of paths that are no network's.
var reserved = map[string]bool{"v3": true, "ws": true, "healthz": true, "readyz": true, openRPCFolder: true}

// CheckNetworkName returns an error if a name cannot be a network's, which is part of paths.
func CheckNetworkName(name string) error {
	if !networkName.MatchString(name) || reserved[name] {
		return fmt.Errorf("invalid network name %q (want up to 63 lower-case letters, digits and hyphens, and none of v3, ws, healthz, readyz), openrpc", name)
	}
	return nil
}

// CheckHost returns an error if a network cannot be served at a host.
func CheckHost(host string) error {
	if !isHost(host) {
		return fmt.Errorf("invalid host %q (want a lower-case name or an address, without scheme and port)", host)
	}
	return nil
}

func newNetworks(list []Network, hosts []string, rpc jsonrpc.Config, g gate, u *usage.Usage) (*networks, error) {
	n := &networks{byName: make(map[string]*served), byHost: make(map[string]*served), wildcards: make(map[string]bool)}
	for _, network := range list {
		if err := CheckNetworkName(network.Name); err != nil {
			return nil, fmt.Errorf("gateway: %w", err)
		}
		if n.byName[network.Name] != nil {
			return nil, fmt.Errorf("gateway: two networks are named %s", network.Name)
		}
		own, guard := rpc, g
		if network.Observer != nil {
			own.Observer = network.Observer
		}
		own.Parse = g.parse
		guard.series = func(string) usage.Series { return 0 }
		if u != nil {
			counts := newCounting(own.Observer, u, network.Name, network.Methods)
			guard.series, own.Observer = counts.of, counts
		}
		serves := &served{network.Name, jsonrpc.NewServer(guard.before(network.Methods), own), network.OpenRPC, guard.series("")}
		n.byName[network.Name] = serves
		for _, host := range network.Hosts {
			if err := CheckHost(host); err != nil {
				return nil, fmt.Errorf("gateway: network %s: %w", network.Name, err)
			}
			if n.byHost[host] != nil {
				return nil, fmt.Errorf("gateway: network %s: the host %s is another network's too", network.Name, host)
			}
			n.byHost[host] = serves
		}
	}
	for _, pattern := range hosts {
		suffix, ok := strings.CutPrefix(pattern, "*")
		if !ok || !strings.HasPrefix(suffix, ".") || !isHost(suffix[1:]) {
			return nil, fmt.Errorf("gateway: invalid pattern of hosts %q (want one such as *.example.org, where the * stands for a network's name)", pattern)
		}
		n.wildcards[suffix] = true
	}
	if len(list) == 1 {
		n.only = n.byName[list[0].Name]
	}
	return n, nil
}

// isHost says whether a host is written as hosts are compared.
func isHost(host string) bool {
	return host != "" && host == hostname(host) && !strings.ContainsAny(host, "/@* ")
}

// find returns the network that a request is for, nil if there is none. name is empty
// where the path had none. A host that is a network's own comes before a pattern.
func (n *networks) find(name, host string) *served {
	switch {
	case name != "":
		return n.byName[name]
	case n.only != nil:
		return n.only
	}
	host = hostname(host)
	if found := n.byHost[host]; found != nil {
		return found
	}
	if dot := strings.IndexByte(host, '.'); dot > 0 && n.wildcards[host[dot:]] {
		return n.byName[host[:dot]]
	}
	return nil
}

// hostname is a Host header's name as hosts are compared: without its port and a
// final dot, in lower case.
func hostname(host string) string {
	if i := strings.LastIndexByte(host, ':'); i >= 0 && strings.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// names lists the networks, in order.
func (n *networks) names() []string { return slices.Sorted(maps.Keys(n.byName)) }
