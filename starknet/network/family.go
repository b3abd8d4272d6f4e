// Package network implements [family.Family] for Starknet networks: it opens, follows,
// imports, verifies and describes them.
package network

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ashlar/family"
	"ashlar/history/tip"
	"ashlar/kv"
	"ashlar/starknet/archive"
	"ashlar/starknet/ingest"
	"ashlar/starknet/query"
)

const name = "starknet"

// Family implements [family.Family].
type Family struct{}

// Name implements [family.Family].
func (Family) Name() string { return name }

// Stores implements [family.Family].
func (Family) Stores() bool { return true }

// Entries are the entries of a Starknet network in the configuration.
type Entries struct {
	Source family.Sources `yaml:"source"` // the nodes that it follows
	Quorum int            `yaml:"quorum"` // how many of them must agree on a head
	Chain  string         `yaml:"chain"`  // ID of the chain, such as SN_MAIN; empty: see chainID
	First  uint64         `yaml:"first"`  // the block with which a new network begins
}

// Entries implements [family.Configurer].
func (Family) Entries() family.Entries { return &Entries{Quorum: 1} }

// Check implements [family.Entries].
func (e *Entries) Check(network string) []family.Problem {
	return family.Problems(
		family.Problem{Entry: "source", Err: e.checkSource()},
		family.Problem{Entry: "quorum", Err: e.checkQuorum()},
		family.Problem{Entry: "chain", Err: checkChainName(network, e.Chain)},
	)
}

// checkChainName returns an error if a network is named like a public one, and has the
// chain of another. id may be empty.
func checkChainName(network, id string) error {
	public := map[string]string{"mainnet": "SN_MAIN", "sepolia": "SN_SEPOLIA"}
	want, named := public[network]
	if !named || id == want || !slices.Contains(slices.Collect(maps.Values(public)), id) {
		return nil
	}
	return fmt.Errorf("the network %s has the chain %s (want %s, or another name for the network)", network, id, want)
}

func (e *Entries) checkSource() error {
	if len(e.Source) > 1 && e.Quorum == 1 {
		return fmt.Errorf("%d nodes (want one, or a quorum of at least 2 that must agree)", len(e.Source))
	}
	return e.Source.Check("http", "https")
}

func (e *Entries) checkQuorum() error {
	if e.Quorum < 1 || e.Quorum > max(1, len(e.Source)) {
		return fmt.Errorf("quorum %d of %d nodes (want 1 to the number of nodes in source)", e.Quorum, len(e.Source))
	}
	return nil
}

// CheckFiles implements [family.Entries].
func (e *Entries) CheckFiles() []family.Problem { return nil }

// chainID is the ID of a network's chain if nothing says what it is: that of the
// public network of the same name, else the name in upper case.
func chainID(network string) string {
	switch network {
	case "mainnet":
		return "SN_MAIN"
	case "sepolia", "goerli", "goerli2":
		return "SN_" + strings.ToUpper(network)
	}
	id := strings.ToUpper(strings.ReplaceAll(network, "-", "_"))
	return id[:min(len(id), 31)]
}

// Begin implements [family.Opener]. A network with a source begins empty: the node
// supplies the blocks.
func (Family) Begin(ctx context.Context, p family.Place, e family.Entries) error {
	entries := e.(*Entries)
	if !p.New || len(entries.Source) == 0 {
		return nil
	}
	_, store, err := create(ctx, p, kv.Options{}, entries.Chain)
	if err != nil {
		return err
	}
	return store.Close()
}

// create opens the settled history of a network, or makes it. id may be empty.
func create(ctx context.Context, p family.Place, o kv.Options, id string) (*archive.Archive, kv.Store, error) {
	if id == "" && p.New {
		id = chainID(p.Name)
	}
	o.Accept = func(r kv.Reader) error { return archive.Accept(ctx, r, id) }
	store, err := p.Open(o)
	if err != nil {
		return nil, nil, err
	}
	var a *archive.Archive
	if id == "" {
		a, err = archive.Open(ctx, store)
	} else {
		a, err = archive.Create(ctx, store, id)
	}
	if err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return a, store, nil
}

// Accept implements [family.Opener].
func (Family) Accept(ctx context.Context, r kv.Reader) error { return archive.Accept(ctx, r, "") }

// Tables implements [family.Opener].
func (Family) Tables() []*kv.Table { return slices.Concat(archive.Tables(), tip.Tables()) }

// Open implements [family.Opener].
func (Family) Open(ctx context.Context, store kv.Store, e family.Entries, reading bool) (family.Network, error) {
	entries := e.(*Entries)
	a, err := archive.Open(ctx, store)
	if err != nil {
		return nil, err
	}
	if a.Span() == nil && (reading || len(entries.Source) == 0) {
		return nil, family.ErrNoBlocks
	}
	if entries.Chain != "" && entries.Chain != a.ChainID() {
		return nil, fmt.Errorf("its chain ID is %s, the configuration says %s", a.ChainID(), entries.Chain)
	}
	if reading {
		watched, err := tip.Watch(ctx, store, archive.Tables(), a.Refresh)
		if err != nil {
			return nil, err
		}
		above := func() *tip.Tip { return watched.Tip }
		return &network{entries: entries, archive: a, watched: watched, chain: query.NewChain(a, above)}, nil
	}
	follower, err := ingest.OpenFollower(ctx, store, a, ingest.DefaultDepth)
	if err != nil {
		return nil, err
	}
	return &network{entries: entries, archive: a, follower: follower, chain: query.NewChain(a, follower.Tip)}, nil
}
