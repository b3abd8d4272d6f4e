// Package control lets a command work on the keys of a data directory while a
// server has it open, though only one process may.
//
// A server listens on the Unix domain socket control.sock in its data directory,
// which only the server's user may connect to ([Listen], [Server.Run]). A command
// opens the store itself or, when it is in use, speaks to that socket ([Reach]).
// On the socket is HTTP with JSON bodies:
//
//	POST /keys         {"name":"...", ...}  the new key: {"apiKey":"...","key":{...}}
//	GET  /keys                              all keys: [{...}, ...]
//	POST /keys/revoke  {"key":"ID or name"} the key as it is now: {...}
//	POST /keys/restrict {"key":"ID or name","rules":{...}} the key as it is now: {...}
//	GET  /status                            what the server says of itself
//
// An error has a status of 400 or above and the body {"error":"..."}. It is no
// public interface: both ends are always of the same program.
package control

import (
	"context"

	"ashlar/account"
)

// Keys is what can be done to the keys of a data directory: directly, as an
// [account.Keyring] does it, or through the process that has it open, as a [Client].
type Keys interface {
	Create(ctx context.Context, n account.NewKey) (account.Issued, error)
	List(ctx context.Context) ([]account.Key, error)
	Revoke(ctx context.Context, idOrName string) (account.Key, error)
	Restrict(ctx context.Context, idOrName string, rules account.Rules) (account.Key, error)
}

var (
	_ Keys = (*account.Keyring)(nil)
	_ Keys = (*Client)(nil)
)

type (
	revokeRequest struct {
		Key string `json:"key"`
	}
	restrictRequest struct {
		Key   string        `json:"key"`
		Rules account.Rules `json:"rules"`
	}
	errorAnswer struct {
		Error string `json:"error"`
	}
)
