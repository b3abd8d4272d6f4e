// Package control lets a command work on the accounts and keys of a data directory
// while a server has it open, though only one process may.
//
// A server listens on the Unix domain socket control.sock in its data directory,
// which only the server's user may connect to ([Listen], [Server.Run]). A command
// opens the store itself or, when it is in use, speaks to that socket ([Reach]).
// On the socket is HTTP: each operation is a POST to its own path with a JSON body, and
// so is the answer. An error has the status 400 and the body
// {"error":"...","kind":"..."}. It is no public interface: both ends are always of
// the same program.
package control

import (
	"context"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
)

// Service is what can be done in a data directory: directly, or through the process
// that has it open.
type Service struct {
	Keys     Keys
	Accounts Accounts
	Usage    Usage
}

// Keys is what can be done with keys. An [account.Keyring] does it directly.
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

// Accounts is what can be done with accounts and invitations. [account.Accounts] does
// it directly.
type Accounts interface {
	Create(ctx context.Context, n account.NewAccount) (token string, a account.Account, err error)
	List(ctx context.Context) ([]account.Account, error)
	Reset(ctx context.Context, idOrEmail string) (token string, until time.Time, err error)
	Disable(ctx context.Context, idOrEmail string) (account.Account, error)
	Enable(ctx context.Context, idOrEmail string) (account.Account, error)
	SetRole(ctx context.Context, idOrEmail string, role account.Role) (account.Account, error)
	SetLimits(ctx context.Context, idOrEmail string, limits account.Limits) (account.Account, error)
	Invite(ctx context.Context, n account.NewInvitation) (token string, i account.Invitation, err error)
	Invitations(ctx context.Context) ([]account.Invitation, error)
	Withdraw(ctx context.Context, id string) (account.Invitation, error)
}

// Usage tells what was done with keys. A [usage.Usage] does it directly.
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
