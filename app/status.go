package app

import (
	"context"
	"errors"
	"log/slog"

	"ashlar/account/control"
	"ashlar/kv/pebble"
)

// Status is what a data directory holds.
type Status struct {
	Networks []NetworkStatus `json:"networks"`
}

// NetworkStatus is what is held of one network.
type NetworkStatus struct {
	Name      string `json:"name"`
	Family    string `json:"family"`
	ChainID   uint64 `json:"chainId"`
	Head      uint64 `json:"head"`
	HeadHash  string `json:"headHash"`
	HeadTime  uint64 `json:"headTime"` // Unix seconds
	Settled   uint64 `json:"settled"`  // up to here no reorganization is possible
	DiskBytes int64  `json:"diskBytes"`

	Source *SourceStatus `json:"source,omitempty"` // of a network that follows nodes now
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
	status := NetworkStatus{Name: n.name, Family: "evm", DiskBytes: n.store.Stats().DiskBytes}
	if id := n.archive.Genesis().Config.ChainID; id != nil {
		status.ChainID = id.Uint64()
	}
	view, err := n.chain.View()
	if err != nil {
		return status, err
	}
	head := view.Head()
	header, err := view.Header(ctx, head.Number)
	if err != nil {
		return status, err
	}
	settled, _ := n.archive.Settled()
	status.Head, status.HeadHash, status.HeadTime = head.Number, head.Hash.Hex(), header.Time
	status.Settled = settled.Number
	if n.following != nil {
		status.Source = n.following.status()
	}
	return status, nil
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
		n, err := openNetwork(ctx, data, name, pebble.Options{})
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
