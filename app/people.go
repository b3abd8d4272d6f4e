package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync/atomic"
	"time"

	"ashlar/account"
	"ashlar/account/control"
	"ashlar/account/failures"
	"ashlar/account/mail"
	"ashlar/account/oidc"
	"ashlar/account/session"
	"ashlar/account/usage"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/kv"
	"ashlar/limit"
	"ashlar/retry"
)

// people is the open store of the accounts with its contents.
type people struct {
	store    kv.Store
	accounts *account.Accounts
	keys     *account.Keyring
	sessions *session.Store
	usage    *usage.Usage
	failures *failures.Log
	mail     *mail.Sender           // nil if no mail server is configured
	provider *oidc.Provider         // nil if none is configured
	group    *limit.Group           // nil if no other process uses the accounts
	claim    *claim                 // to the name under which it counts usage; nil likewise
	unread   *atomic.Pointer[error] // why changes are not exchanged with other processes; nil: they are
}

// unreadChanges returns why changes of accounts and keys are not exchanged with other processes, nil if they are.
func (p *people) unreadChanges() error {
	if p.unread == nil {
		return nil
	}
	if why := p.unread.Load(); why != nil {
		return *why
	}
	return nil
}

func (p *people) service() control.Service {
	return control.Service{Keys: p.keys, Accounts: p.accounts, Usage: p.usage}
}

// openPeople opens the accounts of a data directory. again tries to store restrictions that
// the store refuses; nil: they are errors.
//
// node is the name of a process that counts usage; empty for others.
func openPeople(ctx context.Context, data store.Stores, c config.Accounts, node string, again *retry.Task) (people, error) {
	opened, err := data.OpenAccounts(func(r kv.Reader) error { return account.Accept(ctx, r) })
	if err != nil {
		return people{}, err
	}
	p := people{store: opened, sessions: session.NewStore(opened, nil), failures: failures.New(), unread: new(atomic.Pointer[error])}
	accounts := c.Service()
	accounts.Retry = again
	_, accounts.Shared = data.(*store.Keyspace)
	if p.mail, err = c.Mail.Open(); err != nil {
		return people{}, errors.Join(err, opened.Close())
	}
	if p.provider, err = c.OIDC.Open(); err != nil {
		return people{}, errors.Join(err, opened.Close())
	}
	if p.mail != nil {
		accounts.Mailer = p.mail
	}
	if p.accounts, err = account.OpenAccounts(ctx, opened, accounts); err == nil {
		p.keys, err = account.OpenKeyring(ctx, p.accounts)
	}
	board, shared := opened.(kv.Board)
	if err == nil && shared && node != "" {
		p.group = limit.NewGroup(board)
		if p.claim, err = claimName(ctx, board, node); err == nil {
			node = p.claim.name
		}
	}
	if err == nil {
		p.usage, err = openUsage(ctx, opened, c, node, p.keys.Known)
	}
	if err != nil {
		p.claim.close()
		return people{}, errors.Join(err, opened.Close())
	}
	p.accounts.Attach(p.usage, p.sessions, p.failures)
	return p, nil
}

// A server that starts waits for a process that has the accounts of its data directory open for a moment: a command, or a backup
// that begins.
const (
	peopleWait  = 10 * time.Second
	peopleRetry = 100 * time.Millisecond
)

// awaitPeople opens the accounts for a server.
func (s *Service) awaitPeople(ctx context.Context, node string) (people, error) {
	again := retry.New("store restrictions of accounts and keys, which are in effect", slog.Default())
	dir, local := s.stores.(store.Dir)
	end := time.Now().Add(peopleWait)
	for logged := false; ; logged = true {
		p, err := openPeople(ctx, s.stores, s.config.Accounts, node, again)
		if !local || !errors.Is(err, kv.ErrInUse) || time.Now().After(end) {
			return p, err
		}
		if client, notThere := control.Dial(ctx, string(dir)); notThere == nil { // another server
			return p, errors.Join(err, client.Close())
		}
		if !logged {
			slog.Info("waiting for another process to close the accounts", "at_most", peopleWait, "because", err)
		}
		if err := retry.Sleep(ctx, peopleRetry); err != nil {
			return p, err
		}
	}
}

// openUsage opens the usage of the keys.
func openUsage(ctx context.Context, opened kv.Store, c config.Accounts, node string, known func() map[account.KeyID]bool) (*usage.Usage, error) {
	u := usage.Config{Keep: c.UsageDays, Known: known, All: node == ""}
	if node != "" {
		var err error
		if u.Node, err = nodeNumber(ctx, opened, node); err != nil {
			return nil, err
		}
	}
	return usage.Open(ctx, opened, u)
}

// refreshEvery is the time between two looks at what other processes have changed.
const refreshEvery = 300 * time.Millisecond

// refresh applies what other processes change, and what a change that failed has left, until ctx is done.
func (p *people) refresh(ctx context.Context) error {
	tick := time.NewTicker(refreshEvery)
	defer tick.Stop()
	failing := false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		err := p.keys.Refresh(ctx)
		if err != nil && !failing && ctx.Err() == nil {
			slog.Warn("changes of accounts and keys are not exchanged with other processes; trying again", "error", err)
		} else if err == nil && failing {
			slog.Info("changes of accounts and keys are exchanged again")
		}
		if failing = err != nil; failing {
			p.unread.Store(&err)
		} else {
			p.unread.Store(nil)
		}
	}
}

// OpenAccounts opens the accounts and API keys of a data directory, or connects to the
// server that has them open. The directory must exist; it may be empty. Those in a keyspace
// are opened beside the servers that use them. c is the configuration of a server that is
// not running. The caller must close the closer, and the stores after it.
func OpenAccounts(ctx context.Context, data store.Stores, c *config.Config) (control.Service, io.Closer, error) {
	limits := config.Accounts{Keys: c.Accounts.Keys, Teams: c.Accounts.Teams, UsageDays: c.Accounts.UsageDays} // commands send no e-mails
	open := func(ctx context.Context) (control.Service, io.Closer, error) {
		people, err := openPeople(ctx, data, limits, "", nil)
		if err != nil {
			return control.Service{}, nil, err
		}
		service := people.service()
		service.Dashboard = func(context.Context) (string, error) { return DashboardURL(c, ""), nil }
		return service, people.store, nil
	}
	dir, ok := data.(store.Dir)
	if !ok {
		return open(ctx)
	}
	if err := dir.CheckThere(); err != nil {
		return control.Service{}, nil, err
	}
	return control.Reach(ctx, string(dir), open, func(err error) bool { return errors.Is(err, kv.ErrInUse) })
}
