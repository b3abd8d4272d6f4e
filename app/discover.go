package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// discoverEvery is the time between two looks for networks that other processes have made.
const discoverEvery = 2 * time.Second

// discovers reports whether the service serves networks that are made while it runs: those
// of a reader whose configuration lists none.
func (s *Service) discovers() bool {
	_, shared := s.stores.(*store.Keyspace)
	return s.config.Role == config.Reader && len(s.config.Networks) == 0 && shared
}

// discover serves networks that other processes make, until ctx is done.
func (s *Service) discover(ctx context.Context) error {
	tick := time.NewTicker(discoverEvery)
	defer tick.Stop()
	failed := map[string]bool{} // names of networks, and "" for the list of them; each is logged once
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		names, err := s.stores.List(ctx)
		if err != nil && !failed[""] && ctx.Err() == nil {
			slog.Warn("new networks are not noticed; trying again", "error", err)
		}
		failed[""] = err != nil
		for _, name := range names {
			if s.Network(name) != nil {
				continue
			}
			err := s.AddNetwork(ctx, name)
			begins := family.Incomplete(err) || errors.Is(err, kv.ErrNotFound)
			if err != nil && !begins && !failed[name] && ctx.Err() == nil {
				slog.Warn("a new network is not served; trying again", "network", name, "error", err)
			}
			failed[name] = err != nil && !begins
		}
	}
}
