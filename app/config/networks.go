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

	"ashlar/family"
	"ashlar/gateway"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// Network is one network of ashlar.yaml: the entries that every network has, and those
// of its family.
type Network struct {
	Hosts  []string      `yaml:"hosts"`  // host names that the network is served at
	Family string        `yaml:"family"` // empty: that of the stored network; for a new one the default family
	Behind time.Duration `yaml:"behind"` // the service is not ready if the newest block is older; 0: any age is accepted

	// own are the entries of the family. If the configuration does not name the
	// family, the entries are read as those of every family, because only the stored
	// network says which one it is.
	own map[string]ownEntries // by family
}

// ownEntries are entries as a family has them, or why they are not.
type ownEntries struct {
	entries family.Entries
	wrong   error
}

// Entries returns the entries that a family has of its own.
func (n Network) Entries(f family.Family) (family.Entries, error) {
	own, ok := n.own[f.Name()]
	if !ok {
		return f.Entries(), nil
	}
	return own.entries, own.wrong
}

// With returns the network with a family and its entries.
func (n Network) With(f family.Family, e family.Entries) Network {
	n.Family, n.own = f.Name(), map[string]ownEntries{f.Name(): {entries: e}}
	return n
}

// NetworksAtStart are the networks with those of their entries that take a restart to
// change.
func (c *Config) NetworksAtStart() map[string]Network {
	all := maps.Clone(c.Networks)
	for name, network := range all {
		network.Hosts, network.Behind = nil, 0
		all[name] = network
	}
	return all
}

// HostsOf lists the hosts at which a network is served without its name in the path.
func (c *Config) HostsOf(network string) []string {
	hosts := slices.Clone(c.Networks[network].Hosts)
	for _, pattern := range c.Hosts {
		hosts = append(hosts, strings.Replace(pattern, "*", network, 1))
	}
	return hosts
}

// takeOwn takes the entries of families out of a document, and returns them by network.
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

// readOwn reads the entries of the networks' families. An error says what is wrong
// with the entries of all networks.
func (c *Config) readOwn(path string, own map[string]*ast.MappingNode, families family.Families) error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(own)) {
		n := c.Networks[name]
		wanted, err := families.Named(n.Family)
		if err != nil {
			continue // its rule says so
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

// readEntries reads the entries of a network as those of a family.
func readEntries(path, network string, node *ast.MappingNode, e family.Entries, f family.Family, families family.Families) error {
	var problems []error
	known := reflect.TypeOf(e).Elem()
	for _, entry := range node.Values {
		if key := keyOf(entry); memberType(known, key) == nil {
			problems = append(problems, fmt.Errorf("%s:%d: networks.%s.%s: unknown entry of a network of family %s%s",
				path, entry.Key.GetToken().Position.Line, network, key, f.Name(), familyWith(key, families)))
		}
	}
	problems = append(problems, checkValues(path, "networks."+network, node, known))
	if err := errors.Join(problems...); err != nil {
		return err
	}
	if err := yaml.NodeToValue(node, e, yaml.Strict()); err != nil {
		return syntaxError(path, err)
	}
	return nil
}

// familyWith says which family has an entry.
func familyWith(key string, families family.Families) string {
	for _, f := range families {
		if memberType(reflect.TypeOf(f.Entries()).Elem(), key) != nil {
			return fmt.Sprintf(" (family: %s has it)", f.Name())
		}
	}
	return ""
}

// networkRules are the rules of the networks: of their names first, because they are
// part of the other entries' paths.
func (c *Config) networkRules(families family.Families) []rule {
	names := slices.Sorted(maps.Keys(c.Networks))
	list := []rule{{"$.networks", func() error { return each(names, gateway.CheckNetworkName) }}}
	for _, name := range names {
		n, path := c.Networks[name], "$.networks."+name
		list = append(list,
			rule{path + ".family", func() error { _, err := families.Named(n.Family); return err }},
			rule{path + ".hosts", func() error { return each(n.Hosts, gateway.CheckHost) }},
			rule{path + ".behind", func() error {
				if n.Behind < 0 {
					return fmt.Errorf("%v is negative: expected 0 or more", n.Behind)
				}
				return nil
			}})
	}
	return append(list, c.ownRules(families, family.Entries.Check)...)
}

// ownRules are the rules of the entries of the networks' families, which check returns
// the problems with.
func (c *Config) ownRules(families family.Families, check func(family.Entries) []family.Problem) (list []rule) {
	for _, name := range slices.Sorted(maps.Keys(c.Networks)) {
		f, err := families.Named(c.Networks[name].Family)
		if err != nil {
			continue
		}
		e, err := c.Networks[name].Entries(f)
		if err != nil {
			continue
		}
		for _, problem := range check(e) {
			list = append(list, rule{strings.TrimSuffix("$.networks."+name+"."+problem.Entry, "."), func() error { return problem.Err }})
		}
	}
	return list
}

// fileRules are the rules of the files that the configuration names.
func (c *Config) fileRules(families family.Families) []rule {
	list := []rule{{"$.tls", func() error {
		if c.TLS.Certificate == "" {
			return nil
		}
		_, err := c.TLS.Open(context.Background(), c.Data)
		return err
	}}}
	return append(list, c.ownRules(families, family.Entries.CheckFiles)...)
}
