package control

import (
	"context"
	"net/http"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
)

// Operations on keys and their usage.
var (
	createKey   = operation[account.NewKey, account.Issued]{"/keys/create"}
	listKeys    = operation[nothing, []account.Key]{"/keys/list"}
	restrictKey = operation[keyRequest, account.Key]{"/keys/restrict"}
	expireKey   = operation[keyRequest, account.Key]{"/keys/expire"}
	rotateKey   = operation[keyRequest, account.Issued]{"/keys/rotate"}
	guardKey    = operation[keyRequest, account.Issued]{"/keys/guard"}
	unguardKey  = operation[keyRequest, account.Key]{"/keys/unguard"}
	revokeKey   = operation[keyRequest, account.Key]{"/keys/revoke"}
	readUsage   = operation[usage.Query, []usage.Line]{"/usage/read"}
	lastUsed    = operation[account.KeyID, time.Time]{"/usage/last"}
)

// keyRequest is a key and the changes to make to it.
type keyRequest struct {
	Key     string        `json:"key"` // its ID or its name
	Rules   account.Rules `json:"rules,omitzero"`
	Expires time.Time     `json:"expires,omitzero"`
	Overlap time.Duration `json:"overlap,omitempty"`
}

// serveKeys registers the operations on keys.
func serveKeys(mux *http.ServeMux, keys Keys, used Usage) {
	createKey.serve(mux, keys.Create)
	listKeys.serve(mux, func(ctx context.Context, _ nothing) ([]account.Key, error) { return keys.List(ctx) })
	restrictKey.serve(mux, func(ctx context.Context, in keyRequest) (account.Key, error) {
		return keys.Restrict(ctx, in.Key, in.Rules)
	})
	expireKey.serve(mux, func(ctx context.Context, in keyRequest) (account.Key, error) {
		return keys.Expire(ctx, in.Key, in.Expires)
	})
	rotateKey.serve(mux, func(ctx context.Context, in keyRequest) (account.Issued, error) {
		return keys.Rotate(ctx, in.Key, in.Overlap)
	})
	guardKey.serve(mux, func(ctx context.Context, in keyRequest) (account.Issued, error) { return keys.Guard(ctx, in.Key) })
	unguardKey.serve(mux, func(ctx context.Context, in keyRequest) (account.Key, error) { return keys.Unguard(ctx, in.Key) })
	revokeKey.serve(mux, func(ctx context.Context, in keyRequest) (account.Key, error) { return keys.Revoke(ctx, in.Key) })
	readUsage.serve(mux, used.Read)
	lastUsed.serve(mux, used.LastUsed)
}

// keysClient implements Keys through the process that has the store open.
type keysClient struct{ *Client }

func (k keysClient) Create(ctx context.Context, n account.NewKey) (account.Issued, error) {
	return createKey.ask(ctx, k.Client, n)
}

func (k keysClient) List(ctx context.Context) ([]account.Key, error) {
	return listKeys.ask(ctx, k.Client, nothing{})
}

func (k keysClient) Restrict(ctx context.Context, idOrName string, rules account.Rules) (account.Key, error) {
	return restrictKey.ask(ctx, k.Client, keyRequest{Key: idOrName, Rules: rules})
}

func (k keysClient) Expire(ctx context.Context, idOrName string, at time.Time) (account.Key, error) {
	return expireKey.ask(ctx, k.Client, keyRequest{Key: idOrName, Expires: at})
}

func (k keysClient) Rotate(ctx context.Context, idOrName string, overlap time.Duration) (account.Issued, error) {
	return rotateKey.ask(ctx, k.Client, keyRequest{Key: idOrName, Overlap: overlap})
}

func (k keysClient) Guard(ctx context.Context, idOrName string) (account.Issued, error) {
	return guardKey.ask(ctx, k.Client, keyRequest{Key: idOrName})
}

func (k keysClient) Unguard(ctx context.Context, idOrName string) (account.Key, error) {
	return unguardKey.ask(ctx, k.Client, keyRequest{Key: idOrName})
}

func (k keysClient) Revoke(ctx context.Context, idOrName string) (account.Key, error) {
	return revokeKey.ask(ctx, k.Client, keyRequest{Key: idOrName})
}

// usageClient implements Usage through the process that has the store open.
type usageClient struct{ *Client }

func (u usageClient) Read(ctx context.Context, q usage.Query) ([]usage.Line, error) {
	return readUsage.ask(ctx, u.Client, q)
}

func (u usageClient) LastUsed(ctx context.Context, key account.KeyID) (time.Time, error) {
	return lastUsed.ask(ctx, u.Client, key)
}
