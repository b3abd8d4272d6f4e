package command

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"ashlar/account/control"
	"ashlar/app/store"
	"ashlar/kv"
)

// A command that copies stores waits for a server that is starting.
const (
	serverWait  = time.Minute
	serverRetry = 100 * time.Millisecond
)

// awaitServer returns a connection to the server of a data directory, nil if none is running. A server that is starting opens
// the accounts first, and answers when it has opened all networks. A command that opened these meanwhile would keep them from
// being served, and could not copy the others. So while the accounts are open and no server answers, it waits. If
// a server is expected, it also waits before the accounts are open: the server could not start without them.
func awaitServer(ctx context.Context, data store.Dir, expected bool) (*control.Client, error) {
	end := time.Now().Add(serverWait)
	for logged := false; ; logged = true {
		if client, err := control.Dial(ctx, string(data)); err == nil {
			return client, nil
		}
		waits, err := inUse(data)
		if waits = waits || expected; err != nil || !waits || time.Now().After(end) {
			return nil, err
		}
		if !logged {
			slog.Info("waiting for the server to answer", "at_most", serverWait)
		}
		select {
		case <-time.After(serverRetry):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// inUse reports whether a process has the accounts of a data directory open.
func inUse(data store.Dir) (bool, error) {
	free, err := data.Reserve(store.AccountsName)
	if err != nil {
		return errors.Is(err, kv.ErrInUse), nil // another error is that of opening the store, too
	}
	return false, free()
}
