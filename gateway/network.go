package gateway

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"ashlar/jsonrpc"
)

// Network is a chain that requests can be for.
type Network struct {
	Name    string   // as in its path: lower-case letters, digits and hyphens
	Hosts   []string // names, without ports, at which it is served without its path
	Methods jsonrpc.Methods
	// Observer is told of the network's calls, in place of the one in Config.RPC;
	// it may be nil.
	Observer jsonrpc.Observer
}

// networks finds what answers for a network.
type networks struct {
	byName map[string]*jsonrpc.Server
	byHost map[string]*jsonrpc.Server
	only   *jsonrpc.Server // the network, where there is but one
}

var networkName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// reserved are first segments of paths that are no network's.
var reserved = map[string]bool{"v3": true, "ws": true, "healthz": true, "readyz": true}

func newNetworks(list []Network, config jsonrpc.Config) (*networks, error) {
	n := &networks{byName: make(map[string]*jsonrpc.Server), byHost: make(map[string]*jsonrpc.Server)}
	for _, network := range list {
		if !networkName.MatchString(network.Name) || reserved[network.Name] {
			return nil, fmt.Errorf("gateway: %q cannot be a network's name: expected lower-case letters, digits and hyphens, and none of v3, ws, healthz, readyz", network.Name)
		}
		if n.byName[network.Name] != nil {
			return nil, fmt.Errorf("gateway: two networks are named %s", network.Name)
		}
		own := config
		if network.Observer != nil {
			own.Observer = network.Observer
		}
		server := jsonrpc.NewServer(network.Methods, own)
		n.byName[network.Name] = server
		for _, host := range network.Hosts {
			if host == "" || host != hostname(host) || strings.ContainsAny(host, "/@ ") {
				return nil, fmt.Errorf("gateway: network %s: %q is no host: expected a lower-case name or an address, without scheme and port", network.Name, host)
			}
			if n.byHost[host] != nil {
				return nil, fmt.Errorf("gateway: network %s: the host %s is another network's too", network.Name, host)
			}
			n.byHost[host] = server
		}
	}
	if len(list) == 1 {
		n.only = n.byName[list[0].Name]
	}
	return n, nil
}

// find returns what answers for a request, nil if nothing does. name is empty
// where the path had none.
func (n *networks) find(name, host string) *jsonrpc.Server {
	switch {
	case name != "":
		return n.byName[name]
	case n.only != nil:
		return n.only
	}
	return n.byHost[hostname(host)]
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
