package command

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ashlar/account/control"
	"ashlar/app"
	"ashlar/app/backup"
	"ashlar/app/store"
	"ashlar/kv"
)

// copies are copies of stores that exist until they are released.
type copies struct {
	sources  []backup.Source
	failed   map[string]error // by the name of a store that cannot be opened or copied, which they name
	releases []func() error
}

// lacks returns those of the wanted stores that have no copy.
func (c *copies) lacks(wanted []string) []string {
	return slices.DeleteFunc(slices.Clone(wanted), func(name string) bool { return c.failed[name] == nil })
}

// why says which stores cannot be copied, nil if all can.
func (c *copies) why() (all error) {
	for _, name := range slices.Sorted(maps.Keys(c.failed)) {
		if all == nil {
			all = c.failed[name]
		} else {
			all = fmt.Errorf("%w; and %w", all, c.failed[name])
		}
	}
	return all
}

func (c *copies) release() (err error) {
	for _, r := range slices.Backward(c.releases) {
		err = errors.Join(err, r())
	}
	return err
}

// rest returns what has been neither copied nor failed.
func (c *copies) rest(what control.Copying) control.Copying {
	what.Stores = slices.DeleteFunc(slices.Clone(what.Stores), func(name string) bool {
		return c.failed[name] != nil || slices.ContainsFunc(c.sources, func(s backup.Source) bool { return s.Name == name })
	})
	return what
}

// checkpoints makes copies of stores: through the running server if there is one, and of
// the others by opening them for a moment. At least one can be copied, or there is an error. The returned context ends when the copies do.
// beside says that a server is expected.
func checkpoints(ctx context.Context, data store.Dir, what control.Copying, beside bool) (context.Context, *copies, error) {
	c := &copies{failed: make(map[string]error)}
	ctx, err := c.make(ctx, data, what, beside)
	if err == nil && len(c.sources) == 0 {
		err = c.why()
	}
	if err != nil {
		return nil, nil, errors.Join(err, c.release())
	}
	slices.SortFunc(c.sources, func(a, b backup.Source) int {
		return slices.Index(what.Stores, a.Name) - slices.Index(what.Stores, b.Name)
	})
	return ctx, c, nil
}

func (c *copies) make(ctx context.Context, data store.Dir, what control.Copying, beside bool) (context.Context, error) {
	for again := false; ; again = true {
		client, err := awaitServer(ctx, data, beside)
		if err != nil {
			return nil, err
		}
		if client != nil {
			if ctx, err = c.ofServer(ctx, client, c.rest(what)); err != nil {
				return nil, err
			}
		}
		err = c.ofClosed(ctx, data, c.rest(what), client == nil && !again)
		if !errors.Is(err, errServerStarts) {
			return ctx, err
		}
	}
}

// ofServer makes copies of those of the stores that a server has open.
func (c *copies) ofServer(ctx context.Context, client *control.Client, what control.Copying) (context.Context, error) {
	c.releases = append(c.releases, client.Close)
	held, made, err := client.Checkpoint(ctx, what)
	if err != nil {
		return nil, err
	}
	c.releases = append(c.releases, made.Close)
	c.add(made.Made)
	return held, nil
}

// errServerStarts means that a process has opened the accounts since no server was running.
var errServerStarts = errors.New("a server is starting")

// ofClosed makes copies of stores that no process has open. Each is open meanwhile, and not afterwards. A server opens
// the accounts first, and would leave out a network that is open here. So they are reserved until all networks are copied. The
// error is errServerStarts if server is set and that is not possible: then one can be asked for the rest.
func (c *copies) ofClosed(ctx context.Context, data store.Dir, what control.Copying, server bool) error {
	free := func() error { return nil }
	if len(what.Stores) > 0 {
		reserved, err := data.Reserve(store.AccountsName)
		switch {
		case err == nil:
			free = reserved
		case server && errors.Is(err, kv.ErrInUse):
			return errServerStarts
		} // if they are damaged, no server starts
	}
	for _, name := range what.Stores {
		if name == store.AccountsName {
			continue
		}
		if err := c.ofStore(ctx, data, name, what.For); err != nil {
			return errors.Join(err, free())
		}
	}
	if err := free(); err != nil {
		return err
	}
	if !slices.Contains(what.Stores, store.AccountsName) {
		return nil
	}
	if err := c.ofStore(ctx, data, store.AccountsName, what.For); err != nil {
		return err
	}
	if server && errors.Is(c.failed[store.AccountsName], kv.ErrInUse) {
		delete(c.failed, store.AccountsName)
		return errServerStarts
	}
	return nil
}

// ofStore makes a copy of a store, which is open meanwhile.
func (c *copies) ofStore(ctx context.Context, data store.Dir, name, purpose string) error {
	opened, err := data.OpenExisting(name)
	if err != nil {
		c.failed[name] = err
		return nil
	}
	made, release, err := app.Checkpoint(ctx, map[string]kv.Store{name: opened}, purpose)
	if errors.Is(err, kv.ErrCheckpoint) {
		err = fmt.Errorf("%w (want one %s at a time)", err, purpose)
	}
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	c.releases = append(c.releases, release)
	if err := opened.Close(); err != nil {
		c.failed[name] = fmt.Errorf("%s: %w", name, err)
		return nil
	}
	c.add(made)
	return nil
}

func (c *copies) add(made []control.Checkpoint) {
	for _, m := range made {
		if m.Failed != "" {
			c.failed[m.Store] = fmt.Errorf("%s: %s", m.Store, m.Failed)
			continue
		}
		c.sources = append(c.sources, backup.Source{Name: m.Store, Dir: m.Dir})
	}
}
