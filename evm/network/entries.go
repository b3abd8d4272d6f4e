package network

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"slices"

	"ashlar/evm/archive"
	"ashlar/evm/genesis"
	"ashlar/evm/source/engine"
	"ashlar/evm/source/node"
	"ashlar/family"
	"ashlar/history/retention"
	"ashlar/upstream"
)

// Which transactions wait on a network that follows nodes.
const (
	poolAll  = "all"  // those that are sent here and those that wait at the nodes
	poolSent = "sent" // those that are sent here
	poolNone = "none" // none: the network takes no transactions
)

// Forms of the pending block.
const (
	pendingSpecified = "specification"  // number and logsBloom are null
	pendingStrict    = "strict-clients" // both are filled, as several clients require
)

// Entries are the entries of an EVM network in the configuration.
type Entries struct {
	Source      family.Sources `yaml:"source"`        // nodes whose chain it follows
	Upstream    upstream.Nodes `yaml:"upstream"`      // nodes that answer about what the network does not have
	Checked     string         `yaml:"check"`         // how their answers are checked: state
	Quorum      int            `yaml:"quorum"`        // how many of them must agree on a head, and on what is final
	Genesis     string         `yaml:"genesis"`       // a file or a built-in network's name, to make the network with
	Engine      Engine         `yaml:"engine"`        // where a consensus client drives it
	LightClient LightClient    `yaml:"light_client"`  // names the head instead of the nodes
	Scripts     bool           `yaml:"scripts"`       // clients may trace with JavaScript
	CallGas     uint64         `yaml:"call_gas"`      // the most gas that a call gets; 0: ten times its block's gas limit
	Pending     string         `yaml:"pending_block"` // form of the pending block; empty: that of the specification
	Pool        string         `yaml:"pool"`          // which transactions wait here: all, sent or none; empty: all

	Retention retention.Window `yaml:"retention"` // how much history is kept

	StateCache family.Bytes `yaml:"state_cache"` // memory for accounts, slots and trie nodes

	// TraceIndex says whether the network has a trace index; nil: a new network has one, an
	// existing one stays as it is.
	TraceIndex *bool `yaml:"trace_index"`
}

// Engine is how a consensus client reaches a network that it drives.
type Engine struct {
	Listen string `yaml:"listen"` // address of the listener for it; empty: the network is not driven
	JWT    string `yaml:"jwt"`    // the file with the secret; empty: one in the data directory
}

// Entries implements [family.Configurer].
func (Family) Entries() family.Entries {
	return &Entries{Quorum: 1, Scripts: true, StateCache: archive.DefaultStateCache}
}

// executes reports whether the network has a tip of executed blocks. A checked one without a
// source does not execute any.
func (e *Entries) executes() bool { return e.Checked == "" || len(e.Source) > 0 }

// What the caches of a network take at most, besides state_cache: the tables of docs/configuration.md have each.
const (
	cachesBytes       = 248 << 20
	provenCachesBytes = 96 << 20 // more, of a network whose answers are proven
)

// CacheBytes implements [family.Cacher].
func (e *Entries) CacheBytes() int64 {
	all := int64(e.StateCache) + cachesBytes
	if e.Checked != "" {
		all += provenCachesBytes
	}
	return all
}

// Check implements [family.Entries].
func (e *Entries) Check(network string) []family.Problem {
	return family.Problems(
		family.Problem{Entry: "source", Err: e.Source.Check(node.Schemes()...)},
		family.Problem{Entry: "upstream", Err: e.Upstream.Check()},
		family.Problem{Entry: "check", Err: e.checkCheck()},
		family.Problem{Entry: "genesis", Err: checkGenesisName(network, e.Genesis)},
		family.Problem{Entry: "quorum", Err: e.checkQuorum()},
		family.Problem{Entry: "engine", Err: e.Engine.check()},
		family.Problem{Entry: "light_client", Err: e.LightClient.check(e)},
		family.Problem{Entry: "retention", Err: e.Retention.Check()},
		family.Problem{Entry: "pool", Err: e.checkPool()},
		family.Problem{Entry: "pending_block", Err: e.checkPending()},
	)
}

// CheckFiles implements [family.Entries].
func (e *Entries) CheckFiles() []family.Problem {
	problems := []family.Problem{{Entry: "upstream", Err: e.Upstream.CheckFiles()}, {Entry: "light_client", Err: e.LightClient.Nodes.CheckFiles()}}
	if e.Genesis != "" {
		_, _, err := genesis.Load(e.Genesis)
		problems = append(problems, family.Problem{Entry: "genesis", Err: err})
	}
	if e.Engine.JWT != "" {
		problems = append(problems, family.Problem{Entry: "engine.jwt", Err: engine.CheckSecret(e.Engine.JWT)})
	}
	return family.Problems(problems...)
}

// checkGenesisName returns an error if a network is named like a public one, and has the
// genesis of another.
func checkGenesisName(network, genesisName string) error {
	public := genesis.Names()
	if network == genesisName || !slices.Contains(public, network) || !slices.Contains(public, genesisName) {
		return nil
	}
	return fmt.Errorf("the network %s has the genesis of %s (want genesis %s, or another name for the network)", network, genesisName, network)
}

func (e *Entries) checkQuorum() error {
	switch {
	case e.Quorum == 1:
	case e.Engine.Listen != "":
		return errors.New("quorum is for networks that follow nodes: with an engine, the consensus client says what the head is")
	case len(e.LightClient.Nodes) > 0:
		return errors.New("quorum is for networks that follow nodes: the light client says what the head is")
	case e.Checked != "" && (e.Quorum < 1 || e.Quorum > len(e.Upstream)):
		return fmt.Errorf("quorum %d of %d nodes (want 1 to the number of nodes in upstream)", e.Quorum, len(e.Upstream))
	case e.executes() && (e.Quorum < 1 || e.Quorum > len(e.Source)):
		return fmt.Errorf("quorum %d of %d nodes (want 1 to the number of nodes in source)", e.Quorum, len(e.Source))
	}
	return nil
}

func (e *Entries) checkPool() error {
	switch {
	case e.Pool != "" && len(e.Source) == 0 && len(e.Upstream) == 0:
		return errors.New("pool is for networks with a source or an upstream: expected one, or no pool")
	case e.Pool == poolAll && len(e.Source) == 0:
		return errors.New("pool: all is for networks with a source, whose nodes say what waits there: expected one, or pool: sent")
	case !slices.Contains([]string{"", poolAll, poolSent, poolNone}, e.Pool):
		return fmt.Errorf("unknown pool %q (want %s, %s or %s)", e.Pool, poolAll, poolSent, poolNone)
	}
	return nil
}

func (e *Entries) checkPending() error {
	if !slices.Contains([]string{"", pendingSpecified, pendingStrict}, e.Pending) {
		return fmt.Errorf("unknown form %q (want %s or %s)", e.Pending, pendingSpecified, pendingStrict)
	}
	return nil
}

// Listens implements [family.Listener].
func (e *Entries) Listens() (entry, address string) { return "engine.listen", e.Engine.Listen }

func (c Engine) check() error {
	if c.Listen == "" {
		if c.JWT != "" {
			return errors.New("jwt is given without listen: expected both, or listen alone")
		}
		return nil
	}
	_, port, err := net.SplitHostPort(c.Listen)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil {
		return fmt.Errorf("listen: invalid address %q (want one such as 127.0.0.1:8551)", c.Listen)
	}
	return nil
}

// secret returns the file with the secret of a network's consensus client.
func (c Engine) secret(s family.Service) (string, error) {
	switch {
	case c.JWT != "":
		return c.JWT, nil
	case s.Data == "":
		return "", errors.New("jwt is empty, and there is no data directory, which would have the secret (want one of the two)")
	}
	return filepath.Join(s.Data, "engine", s.Name+".jwt"), nil
}
