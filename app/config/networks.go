package config

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/family"
	"ashlar/gateway"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Network is one network of ashlar.yaml: the entries common to all networks, and those of
// its family.
type Network struct {
	Hosts  []string      `yaml:"hosts"`  // host names that the network is served at
	Family string        `yaml:"family"` // empty: that of the stored network; for a new one the default family
	Behind time.Duration `yaml:"behind"` // the service is not ready if the newest block is older; 0: any age is accepted
	// Restricted are methods, or prefixes followed by *, that only keys may call whose rules
	// list them.
	Restricted []string `yaml:"restricted"`

	// own holds the entries by family. If the configuration does not name the family, they
	// are decoded for every family, because only the stored network says which one applies.
	own map[string]ownEntries // by family
}

// ownEntries are entries decoded for a family, or the decoding error.
type ownEntries struct {
	entries family.Entries
	wrong   error
}

// Entries returns the entries of a family.
func (n Network) Entries(f family.Family) (family.Entries, error) {
	own, ok := n.own[f.Name()]
	if !ok {
		return f.Entries(), nil
	}
	return own.entries, own.wrong
}

// With returns a copy of the network with a family and its entries.
func (n Network) With(f family.Family, e family.Entries) Network {
	n.Family, n.own = f.Name(), map[string]ownEntries{f.Name(): {entries: e}}
	return n
}

// NetworksAtStart returns the networks with the entries that only a restart can change.
func (c *Config) NetworksAtStart() map[string]Network {
	all := maps.Clone(c.Networks)
	for name, network := range all {
		network.Hosts, network.Behind, network.Restricted = nil, 0, nil
		all[name] = network
	}
	return all
}

// HostsOf lists the hosts that serve a network without its name in the path.
func (c *Config) HostsOf(network string) []string {
	hosts := slices.Clone(c.Networks[network].Hosts)
	for _, pattern := range c.Hosts {
		hosts = append(hosts, strings.Replace(pattern, "*", network, 1))
	}
	return hosts
}

// takeOwn removes the families' entries from a document and returns them by network.
func takeOwn(body ast.Node) map[string]*ast.MappingNode {
	all := make(map[string]*ast.MappingNode)
	document, _ := body.(*ast.MappingNode)
	if document == nil {
		return nil
	}
	for _, entry := range document.Values {
		networks, ok := entry.Value.(*ast.MappingNode)
		if !ok || keyOf(entry) != "networks" {
			continue
		}
		for _, network := range networks.Values {
			entries, ok := network.Value.(*ast.MappingNode)
			if !ok {
				continue
			}
			own := *entries
			own.Values = nil
			entries.Values = slices.DeleteFunc(entries.Values, func(e *ast.MappingValueNode) bool {
				common := memberType(reflect.TypeFor[Network](), keyOf(e)) != nil
				if !common {
					own.Values = append(own.Values, e)
				}
				return !common
			})
			if len(own.Values) > 0 {
				all[keyOf(network)] = &own
			}
		}
	}
	return all
}

func keyOf(entry *ast.MappingValueNode) string { return entry.Key.GetToken().Value }

// readOwn decodes the entries of the networks' families. The error has the problems of all
// networks.
func (c *Config) readOwn(path string, own map[string]*ast.MappingNode, families family.Families) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(own)) {
		n := c.Networks[name]
		if n.Family == "" {
			n.Family = implied(own[name], families)
			c.Networks[name] = n
		}
		wanted, err := families.Named(n.Family)
		if err != nil {
			continue // reported by its rule
		}
		n.own = make(map[string]ownEntries)
		for _, f := range families {
			if n.Family == "" || f == wanted {
				e := f.Entries()
				n.own[f.Name()] = ownEntries{e, readEntries(path, name, own[name], e, f, families)}
			}
		}
		problems = append(problems, n.own[wanted.Name()].wrong)
		c.Networks[name] = n
	}
	return errors.Join(problems...)
}

// implied returns the name of the family that a network's own entries imply, or "".
func implied(own *ast.MappingNode, families family.Families) string {
	value := func(entry string) (string, bool) {
		for _, e := range own.Values {
			if keyOf(e) == entry {
				if _, scalar := e.Value.(ast.ScalarNode); scalar {
					return e.Value.GetToken().Value, true
				}
				return "", true
			}
		}
		return "", false
	}
	for _, f := range families {
		if of, ok := f.(family.Implier); ok && of.Implied(value) {
			return f.Name()
		}
	}
	return ""
}

// readEntries decodes the entries of a network for a family.
func readEntries(path, network string, node *ast.MappingNode, e family.Entries, f family.Family, families family.Families) error {
	var problems []error
	known := reflect.TypeOf(e).Elem()
	for _, entry := range node.Values {
		key := keyOf(entry)
		if of := memberType(known, key); of != nil {
			problems = append(problems, checkValues(path, "networks."+network+"."+key, entry.Value, of))
			continue
		}
		hint := familyWith(key, families)
		if hint == "" {
			hint = meant(known, key)
		}
		problems = append(problems, fmt.Errorf("%s:%d: networks.%s.%s: unknown entry of a network of family %s%s",
			path, entry.Key.GetToken().Position.Line, network, key, f.Name(), hint))
	}
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := yaml.NodeToValue(node, e, yaml.Strict()); err != nil {
		return syntaxError(path, err)
	}
	return nil
}

// familyWith returns a hint which family has an entry, or "".
func familyWith(key string, families family.Families) string {
	for _, f := range families {
		if memberType(reflect.TypeOf(f.Entries()).Elem(), key) != nil {
			return fmt.Sprintf(" (family: %s has it)", f.Name())
		}
	}
	return ""
}

// networkRules returns the rules of networks. The rule of their names comes first, because
// names are part of the other entries' paths.
func (c *Config) networkRules(families family.Families) []rule {
	names := slices.Sorted(maps.Keys(c.Networks))
	list := []rule{{"$.networks", func() error { return each(names, gateway.CheckNetworkName) }}}
	for _, name := range names {
		n, path := c.Networks[name], "$.networks."+name
		list = append(list,
			rule{path + ".family", func() error { _, err := families.Named(n.Family); return err }},
			rule{path + ".hosts", func() error { return each(n.Hosts, gateway.CheckHost) }},
			rule{path + ".restricted", func() error { return c.checkRestricted(n.Restricted, families) }},
			rule{path + ".behind", func() error {
				if n.Behind < 0 {
					return fmt.Errorf("%v is negative: expected 0 or more", n.Behind)
				}
				return nil
			}})
	}
	return append(list, c.ownRules(families, func(name string, e family.Entries) []family.Problem { return e.Check(name) })...)
}

// checkRestricted checks that each entry of a list of methods stands for one at least: a
// misspelled one would leave the method open.
func (c *Config) checkRestricted(restricted []string, families family.Families) error {
	if err := each(restricted, account.CheckMethod); err != nil || len(restricted) == 0 {
		return err
	}
	known, err := c.methods(families)
	if err != nil {
		return err
	}
	return each(restricted, func(entry string) error {
		if !slices.ContainsFunc(known, func(method string) bool { return account.MatchesMethod([]string{entry}, method) }) {
			return fmt.Errorf("unknown method %q (want one of docs/methods.md, or the beginning of one and *)", entry)
		}
		return nil
	})
}

// methods returns the names of all methods, with those that networks add to their families'.
func (c *Config) methods(families family.Families) ([]string, error) {
	all, err := families.Methods()
	if err != nil {
		return nil, err
	}
	for _, n := range c.Networks {
		for _, own := range n.own {
			if adds, ok := own.entries.(family.MethodAdder); ok {
				all = append(all, adds.AddedMethods()...)
			}
		}
	}
	return all, nil
}

// ownRules returns the rules of the families' entries; check returns their problems.
func (c *Config) ownRules(families family.Families, check func(network string, e family.Entries) []family.Problem) (list []rule) {
	for _, name := range slices.Sorted(maps.Keys(c.Networks)) {
		f, err := families.Named(c.Networks[name].Family)
		if err != nil {
			continue
		}
		e, err := c.Networks[name].Entries(f)
		if err != nil {
			continue
		}
		for _, problem := range check(name, e) {
			list = append(list, rule{strings.TrimSuffix("$.networks."+name+"."+problem.Entry, "."), func() error { return problem.Err }})
		}
	}
	return list
}

// fileRules returns the rules of the files named by the configuration.
func (c *Config) fileRules(families family.Families) []rule {
	list := []rule{{"$.tls", func() error {
		if c.TLS.Certificate == "" {
			return nil
		}
		_, err := c.TLS.Open(context.Background(), c.Data)
		return err
	}}, {"$.store.cassandra", c.Store.Cassandra.CheckFiles},
		{"$.accounts.mail", c.Accounts.Mail.checkFiles}, {"$.accounts.oidc", c.Accounts.OIDC.checkFiles}}
	return append(list, c.ownRules(families, func(_ string, e family.Entries) []family.Problem { return e.CheckFiles() })...)
}
