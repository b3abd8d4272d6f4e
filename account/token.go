package account

import (
	"context"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// maxTokens is the maximum number of valid tokens of an account.
const maxTokens = 10

// tokenPrefix begins the text of every token, so that tools which look for leaked secrets
// can recognize one.
const tokenPrefix = "ashlar_"

// MaxTokenTime is the longest time for which a token may be valid.
const MaxTokenTime = 366 * 24 * time.Hour

// Token describes a token without its secret. A script with a token manages the keys of an
// account with the rights of its user.
type Token struct {
	ID      string    `json:"id"`
	Name    string    `json:"name"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
}

// tokenRecord is the JSON of a token in an accountRecord.
type tokenRecord struct {
	Hash    hash    `json:"hash"`
	Name    string  `json:"name"`
	Created seconds `json:"created"`
	Expires seconds `json:"expires"`
}

func (r *tokenRecord) described() Token {
	return Token{hex.EncodeToString(r.Hash[:8]), r.Name, r.Created.time(), r.Expires.time()}
}

// Tokens returns the valid tokens of an account, oldest first.
func (a *Accounts) Tokens(id ID) ([]Token, error) {
	h, err := a.holder(id)
	if err != nil {
		return nil, err
	}
	var all []Token
	for _, r := range h.load().tokens {
		if a.now().Before(r.Expires.time()) {
			all = append(all, r.described())
		}
	}
	return all, nil
}

// CheckToken returns an error if no token can have a name, or be valid for a time.
func CheckToken(name string, valid time.Duration) error {
	if err := checkName(name); err != nil {
		return err
	}
	if name == "" {
		return invalid(FieldName, "the token has no name: expected what it is for")
	}
	if valid < time.Minute || valid > MaxTokenTime {
		return invalid(FieldExpires, "valid for %v: expected from 1 minute to %d days", valid, int(MaxTokenTime.Hours()/24))
	}
	return nil
}

// CreateToken creates a token of an account, on behalf of its user, and returns its text,
// which cannot be read again. A token stays valid when sessions end and the password changes, so a
// signed-in user must prove it all again first, see [Accounts.Reprove].
func (a *Accounts) CreateToken(ctx context.Context, id ID, name string, valid time.Duration) (text string, t Token, err error) {
	if err := CheckToken(name, valid); err != nil {
		return "", t, err
	}
	secret := newSecret()
	h, _ := hashOf(secret)
	now := a.now()
	r := tokenRecord{h, name, toSeconds(now), toSeconds(now.Add(valid))}
	_, err = a.change(ctx, id.String(), "create a token of", onceDurable, func(p *person) error {
		p.tokens = slices.DeleteFunc(slices.Clone(p.tokens), func(r tokenRecord) bool { return !now.Before(r.Expires.time()) })
		if len(p.tokens) >= maxTokens {
			return fmt.Errorf("%w: the account has %d tokens, and may have %d at once: revoke one first", ErrTooMany, len(p.tokens), maxTokens)
		}
		p.tokens = append(p.tokens, r)
		return a.countChange(id)
	})
	if err != nil {
		return "", t, err
	}
	return tokenPrefix + id.String() + secret, r.described(), nil
}

// RevokeToken ends a token of an account at once. Revoking one that is unknown or has ended
// changes nothing.
func (a *Accounts) RevokeToken(ctx context.Context, id ID, token string) (Account, error) {
	return a.changed(ctx, id.String(), "revoke a token of", atOnce, func(p *person) error {
		p.tokens = slices.DeleteFunc(slices.Clone(p.tokens), func(r tokenRecord) bool { return r.described().ID == token })
		return nil
	})
}

// WithToken returns the account that a token belongs to, or ErrToken. Attempts with wrong
// tokens are limited.
func (a *Accounts) WithToken(text string, address netip.Addr) (Account, error) {
	if p := a.tokenOwner(text); p != nil {
		return p.Account, nil
	}
	if err := a.attempt(address, ""); err != nil {
		return Account{}, err
	}
	return Account{}, ErrToken
}

// tokenOwner returns the enabled account that a valid token belongs to, or nil.
func (a *Accounts) tokenOwner(text string) *person {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	var id ID
	if !ok || len(rest) != 2*len(id)+secretLen || id.UnmarshalText([]byte(rest[:2*len(id)])) != nil {
		return nil
	}
	given, _ := hashOf(rest[2*len(id):])
	h, err := a.holder(id)
	if err != nil || !h.load().Enabled() {
		return nil
	}
	p, found := h.load(), false
	for _, r := range p.tokens {
		if subtle.ConstantTimeCompare(given[:], r.Hash[:]) == 1 && a.now().Before(r.Expires.time()) {
			found = true
		}
	}
	if !found {
		return nil
	}
	return p
}
