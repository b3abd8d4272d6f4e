package app

import (
	"context"
	"errors"
	"log/slog"

	"ashlar/account/control"
	"ashlar/kv"
)

// Status is what a data directory holds.
type Status struct {
	Networks []NetworkStatus `json:"networks"`
}

// NetworkStatus is what is held of one network.
type NetworkStatus struct {
	Name      string `json:"name"`
	Family    string `json:"family"`
	ChainID   uint64 `json:"chainId,omitempty"` // of an EVM network
	Chain     string `json:"chain,omitempty"`   // the ID of a Starknet network's chain, as text
	First     uint64 `json:"first"`             // the first block that is held
	Head      uint64 `json:"head"`
	HeadHash  string `json:"headHash"`
	HeadTime  uint64 `json:"headTime"` // Unix seconds
	Settled   uint64 `json:"settled"`  // up to here no reorganization is possible
	DiskBytes int64  `json:"diskBytes"`

	Source    *SourceStatus    `json:"source,omitempty"`    // of a network that follows nodes now
	Consensus *ConsensusStatus `json:"consensus,omitempty"` // of one that a consensus client drives now
}

func (s *service) status(ctx context.Context) (any, error) {
	var all Status
	for _, n := range s.networks {
		one, err := n.status(ctx)
		if err != nil {
			return nil, err
		}
		all.Networks = append(all.Networks, one)
	}
	return all, nil
}

func (n *network) status(ctx context.Context) (NetworkStatus, error) {
	status, err := n.describe(ctx)
	status.Name, status.DiskBytes = n.name, n.store.Stats().DiskBytes
	return status, err
}

// ReadStatus says what a data directory holds, through the server that has it open, if any.
func ReadStatus(ctx context.Context, dir string) (Status, error) {
	var all Status
	if client, err := control.Dial(ctx, dir); err == nil {
		return all, errors.Join(client.Status(ctx, &all), client.Close())
	}
	data := dataDir(dir)
	names, err := data.networkNames()
	if err != nil {
		return all, err
	}
	for _, name := range names {
		n, err := openNetwork(ctx, data, name, NetworkConfig{}, kv.Options{})
		if errors.Is(err, errNoBlocks) {
			slog.Warn("network left out", "network", name, "because", errNoBlocks)
			continue
		}
		if err != nil {
			return all, err
		}
		one, err := n.status(ctx)
		if err := errors.Join(err, n.store.Close()); err != nil {
			return all, err
		}
		all.Networks = append(all.Networks, one)
	}
	return all, nil
}
