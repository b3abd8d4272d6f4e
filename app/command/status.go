package command

import (
	"context"
	"errors"
	"log/slog"

	"ashlar/account/control"
	"ashlar/app"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/history/rows"
	"ashlar/kv"
)

// ReadStatus returns the status of a data directory. If a server has it open, the status
// comes from that server.
func ReadStatus(ctx context.Context, dir string) (app.Status, error) {
	var all app.Status
	if client, err := control.Dial(ctx, dir); err == nil {
		return all, errors.Join(client.Status(ctx, &all), client.Close())
	}
	data := store.Dir(dir)
	names, err := data.Names()
	if err != nil {
		return all, err
	}
	for _, name := range names {
		n, err := app.OpenNetwork(ctx, data, name, config.Network{}, kv.Options{})
		if errors.Is(err, family.ErrNoBlocks) || errors.Is(err, rows.ErrRewinding) {
			slog.Warn("network left out", "network", name, "error", err)
			continue
		}
		if err != nil {
			return all, err
		}
		one, err := n.Status(ctx)
		if err := errors.Join(err, n.Close()); err != nil {
			return all, err
		}
		all.Networks = append(all.Networks, one)
	}
	return all, nil
}
