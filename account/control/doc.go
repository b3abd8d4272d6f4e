// Package control lets a command work on the accounts and keys of a data directory while
// a server has its store open, which only one process may.
//
// The server listens on the Unix domain socket control.sock in its data directory
// ([Listen], [Server.Run]); only the server's user may connect to it. A command opens the
// store itself or, if it is in use, connects to the socket ([Reach]). The protocol is HTTP:
// each operation is a POST to its own path, with a JSON body and a JSON response. An error
// has status 400 and the body {"error":"...","kind":"..."}. This is not a public interface:
// both ends are always the same program.
package control

import (
	"context"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
)

// Service performs operations on a data directory, directly or through the process that has
// it open.
type Service struct {
	Keys     Keys
	Accounts Accounts
	Usage    Usage
	// Dashboard returns the URL of the dashboard for links, without a final slash; empty if
	// there is none.
	Dashboard func(context.Context) (string, error)
}

// Keys are the operations on keys. An [account.Keyring] performs them directly.
type Keys interface {
	Create(ctx context.Context, n account.NewKey) (account.Issued, error)
	List(ctx context.Context) ([]account.Key, error)
	Restrict(ctx context.Context, idOrName string, rules account.Rules) (account.Key, error)
	Expire(ctx context.Context, idOrName string, at time.Time) (account.Key, error)
	Rotate(ctx context.Context, idOrName string, overlap time.Duration) (account.Issued, error)
	Guard(ctx context.Context, idOrName string) (account.Issued, error)
	Unguard(ctx context.Context, idOrName string) (account.Key, error)
	Revoke(ctx context.Context, idOrName string) (account.Key, error)
}

// Accounts are the operations on accounts, invitations and teams. [account.Accounts] performs them
// directly.
type Accounts interface {
	Create(ctx context.Context, n account.NewAccount) (token string, a account.Account, err error)
	List(ctx context.Context) ([]account.Account, error)
	Reset(ctx context.Context, idOrEmail string) (token string, until time.Time, err error)
	ResetFactor(ctx context.Context, idOrEmail string) (account.Account, error)
	Disable(ctx context.Context, idOrEmail string) (account.Account, error)
	Enable(ctx context.Context, idOrEmail string) (account.Account, error)
	Delete(ctx context.Context, idOrEmail string) (account.Account, error)
	SetRole(ctx context.Context, idOrEmail string, role account.Role) (account.Account, error)
	SetLimits(ctx context.Context, idOrEmail string, limits account.Limits) (account.Account, error)
	Invite(ctx context.Context, n account.NewInvitation) (token string, i account.Invitation, err error)
	Invitations(ctx context.Context) ([]account.Invitation, error)
	Withdraw(ctx context.Context, id string) (account.Invitation, error)
	Teams
}

// Usage reads the usage of keys. A [usage.Usage] does so directly.
type Usage interface {
	Read(ctx context.Context, q usage.Query) ([]usage.Line, error)
	LastUsed(ctx context.Context, key account.KeyID) (time.Time, error)
}

var (
	_ Keys     = (*account.Keyring)(nil)
	_ Keys     = keysClient{}
	_ Accounts = (*account.Accounts)(nil)
	_ Accounts = accountsClient{}
	_ Usage    = (*usage.Usage)(nil)
	_ Usage    = usageClient{}
)
