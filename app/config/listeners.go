package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"

	"ashlar/family"
)

// listener is an address at which a server listens.
type listener struct {
	entry   string // "$.listen"
	address string
}

// listeners returns the addresses of all listeners.
func (c *Config) listeners(families family.Families) []listener {
	all := []listener{{"$.listen", c.Listen}, {"$.operator", c.Operator}}
	for _, name := range slices.Sorted(maps.Keys(c.Networks)) {
		f, err := families.Named(c.Networks[name].Family)
		if err != nil {
			continue
		}
		e, err := c.Networks[name].Entries(f)
		if own, ok := e.(family.Listener); ok && err == nil {
			entry, address := own.Listens()
			all = append(all, listener{"$.networks." + name + "." + entry, address})
		}
	}
	return slices.DeleteFunc(all, func(l listener) bool { return l.address == "" })
}

// CheckListeners returns an error if two listeners have the same address. It is not part of Load, because a flag may
// override listen.
func (c *Config) CheckListeners(families family.Families) error {
	var problems []error
	for _, rule := range c.listenerRules(families) {
		if err := rule.check(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", strings.TrimPrefix(rule.path, "$."), err))
		}
	}
	return errors.Join(problems...)
}

// listenerRules returns a rule for each listener, which compares it with those before it.
func (c *Config) listenerRules(families family.Families) (list []rule) {
	all := c.listeners(families)
	for i, l := range all {
		list = append(list, rule{l.entry, func() error {
			for _, other := range all[:i] {
				if collide(l.address, other.address) {
					return fmt.Errorf("%s is also the address of %s, %s (want an address of its own for each listener)", l.address, strings.TrimPrefix(other.entry, "$."), other.address)
				}
			}
			return nil
		}})
	}
	return list
}

// collide reports whether two processes cannot listen at both addresses. Invalid addresses do not collide.
func collide(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil {
		return false
	}
	numberA, errA := net.LookupPort("tcp", portA)
	numberB, errB := net.LookupPort("tcp", portB)
	if errA != nil || errB != nil || numberA != numberB || numberA == 0 { // the system chooses a port for each
		return false
	}
	one, other := boundTo(hostA), boundTo(hostB)
	return one == other || one == "" || other == ""
}

// boundTo returns one form of a host to listen at, "" for all addresses of the machine. Names other than localhost are not
// looked up.
func boundTo(host string) string {
	host = strings.ToLower(host)
	if host == "localhost" {
		return "127.0.0.1"
	}
	address, err := netip.ParseAddr(host)
	switch {
	case err != nil:
		return host
	case address.Unmap().IsUnspecified():
		return ""
	}
	return address.Unmap().String()
}
