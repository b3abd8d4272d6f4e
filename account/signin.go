package account

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"ashlar/account/password"
	"ashlar/kv"
	"ashlar/limit"
)

// Session identifies a signed-in user until the account's sessions are ended. It is not a
// secret and proves nothing by itself: keep it where clients cannot modify it.
type Session string

// session returns a session of the current epoch.
func (p *person) session() Session {
	return Session(p.ID.String() + "." + strconv.FormatUint(p.epoch, 10))
}

// Of reports whether the session is of an account, whether or not it has ended.
func (s Session) Of(id ID) bool {
	owner, _, _ := strings.Cut(string(s), ".")
	return owner == id.String()
}

// ErrBusy means that too many users are signing in at once.
var ErrBusy = password.ErrBusy

// SignIn begins a session if the password is correct. Otherwise the error and the work are
// the same whether or not the account exists. Only a client with the correct password
// learns that an account is disabled, or has a second factor ([CodeNeeded]).
func (a *Accounts) SignIn(ctx context.Context, email, password string, address netip.Addr) (Account, Session, error) {
	folded, err := foldEmail(email)
	if err != nil {
		folded = "" // matches no account; checked like any other
	}
	if err := a.attempt(address, folded); err != nil {
		return Account{}, "", err
	}
	p, err := a.prove(ctx, folded, password)
	if err != nil {
		return Account{}, "", err
	}
	session, err := a.enter(p)
	return p.Account, session, err
}

// attempt charges an attempt to sign in, to register or to set a password to the rate
// limits. email may be empty. An attempt rejected because of its client is not charged to
// the account, so a single client cannot lock the user out.
func (a *Accounts) attempt(address netip.Addr, email string) error {
	now := a.now()
	if err := spend(a.byAddress, now, address, "attempts"); err != nil || email == "" {
		return err
	}
	if err := spend(a.byGuesser, now, guesser{email, limit.Network(address)}, "attempts"); err != nil {
		return err
	}
	return spend(a.byEmail, now, email, "attempts")
}

// prove returns the account with an e-mail address and a password.
func (a *Accounts) prove(ctx context.Context, email, password string) (*person, error) {
	p := a.withEmail(email)
	stored := ""
	if p != nil {
		stored = p.password
	}
	if len(password) > maxPassword {
		password = "" // matches no account
	}
	right, outdated, err := a.hasher.Check(ctx, stored, password)
	switch {
	case err != nil:
		return nil, fmt.Errorf("account: sign in: %w", err)
	case !right:
		return nil, ErrCredentials
	case !p.Enabled():
		return nil, ErrDisabled
	case outdated:
		return a.rehash(ctx, p, password)
	}
	return p, nil
}

// rehash stores a password, just proved to be correct, with the current parameters. A store
// that refuses writes does not keep anybody from signing in: the next time is as good.
func (a *Accounts) rehash(ctx context.Context, p *person, password string) (*person, error) {
	hashed, err := a.hasher.Hash(ctx, password)
	if err != nil {
		return nil, err
	}
	rehashed, err := a.change(ctx, p.ID.String(), "rehash the password of", onceDurable, func(now *person) error {
		if now.password != p.password {
			return ErrCredentials // changed concurrently
		}
		now.password = hashed
		return nil
	})
	if errors.Is(err, kv.ErrFull) || errors.Is(err, kv.ErrFailed) {
		return p, nil
	}
	return rehashed, err
}

// Resume returns the current state of a session's account, or ErrSession.
func (a *Accounts) Resume(s Session) (Account, error) {
	text, epoch, _ := strings.Cut(string(s), ".")
	var id ID
	if id.UnmarshalText([]byte(text)) != nil {
		return Account{}, ErrSession
	}
	h, err := a.holder(id)
	if err != nil {
		return Account{}, ErrSession
	}
	p := h.load()
	if p.IsTeam() || !p.Enabled() || epoch != strconv.FormatUint(p.epoch, 10) {
		return Account{}, ErrSession
	}
	return p.Account, nil
}

// EndSessions ends all sessions of an account, on behalf of the user of one of them, and returns
// another one that replaces it. It returns ErrSession if that one has ended.
func (a *Accounts) EndSessions(ctx context.Context, of Session) (Account, Session, error) {
	known, err := a.Resume(of)
	if err != nil {
		return Account{}, "", err
	}
	p, err := a.change(ctx, known.ID.String(), "end the sessions of", atOnce, func(p *person) error {
		if !p.Enabled() || p.session() != of {
			return ErrSession // ended concurrently
		}
		p.epoch++
		return a.countChange(p.ID)
	})
	if err != nil {
		return Account{}, "", err
	}
	return a.described(p), p.session(), nil
}

// ChangePassword changes the password of an account, given the old one. It ends all
// sessions of the account and returns a new one.
func (a *Accounts) ChangePassword(ctx context.Context, id ID, old, changed string, address netip.Addr) (Session, error) {
	h, err := a.holder(id)
	if err != nil {
		return "", err
	}
	email := h.load().Email
	if err := checkPassword(email, changed); err != nil {
		return "", err
	}
	if err := a.attempt(address, email); err != nil {
		return "", err
	}
	proved, err := a.prove(ctx, email, old)
	if errors.Is(err, ErrCredentials) {
		return "", fmt.Errorf("%w: the current password does not match", ErrCredentials)
	}
	if err != nil {
		return "", err
	}
	hashed, err := a.hasher.Hash(ctx, changed)
	if err != nil {
		return "", err
	}
	p, err := a.change(ctx, id.String(), "change the password of", atOnce, func(p *person) error {
		if p.password != proved.password {
			return ErrCredentials // changed concurrently
		}
		p.setPassword(hashed)
		return nil
	})
	if err != nil {
		return "", err
	}
	return p.session(), nil
}

// Reset returns a token that sets a new password of an account, once, and when the token
// expires. It invalidates earlier tokens. The current password stays valid until the new
// one is set.
func (a *Accounts) Reset(ctx context.Context, idOrEmail string) (token string, until time.Time, err error) {
	p, err := a.change(ctx, idOrEmail, "reset the password of", onceDurable, func(p *person) error {
		token = p.allowReset(a.now().Add(ResetTime))
		return nil
	})
	if err != nil {
		return "", time.Time{}, err
	}
	return token, p.Resets, nil
}

// SetPassword consumes a token from Reset or Create, sets the password of its account, ends
// all sessions of the account and begins a new one. If the account has a second factor, the
// password is set, and the error is CodeNeeded.
func (a *Accounts) SetPassword(ctx context.Context, token, password string, address netip.Addr) (Account, Session, error) {
	if err := a.attempt(address, ""); err != nil {
		return Account{}, "", err
	}
	owner, err := a.Resetting(token)
	if err != nil {
		return Account{}, "", err
	}
	if err := checkPassword(owner.Email, password); err != nil {
		return Account{}, "", err
	}
	hashed, err := a.hasher.Hash(ctx, password)
	if err != nil {
		return Account{}, "", err
	}
	p, err := a.change(ctx, owner.ID.String(), "set the password of", atOnce, func(p *person) error {
		if !p.resets(token, a.now()) {
			return ErrReset // used concurrently
		}
		if !p.Enabled() {
			return ErrDisabled
		}
		if p.resetMailed {
			p.Verified = wholeSeconds(a.now())
		}
		p.setPassword(hashed)
		return nil
	})
	if err != nil {
		return Account{}, "", err
	}
	session, err := a.enter(p)
	return a.described(p), session, err
}

// Resetting returns the account whose password a token can set, or ErrReset. It does not
// consume the token.
func (a *Accounts) Resetting(token string) (Account, error) {
	var id ID
	if len(token) > 2*len(id) && id.UnmarshalText([]byte(token[:2*len(id)])) == nil {
		if h, err := a.holder(id); err == nil && h.load().resets(token, a.now()) {
			return h.load().Account, nil
		}
	}
	return Account{}, ErrReset
}

// allowReset returns a new token that sets the password of p: the account's ID followed by
// a secret.
func (p *person) allowReset(until time.Time) string {
	secret := newSecret()
	h, _ := hashOf(secret)
	p.reset, p.Resets, p.resetMailed = &h, wholeSeconds(until), false
	return p.ID.String() + secret
}

// resets reports whether a token can set the password of p.
func (p *person) resets(token string, now time.Time) bool {
	secret, ok := strings.CutPrefix(token, p.ID.String())
	h, made := hashOf(secret)
	return ok && made && p.reset != nil && now.Before(p.Resets) && subtle.ConstantTimeCompare(h[:], p.reset[:]) == 1
}

// setPassword sets the hashed password of p, and invalidates its sessions and reset token.
func (p *person) setPassword(hashed string) {
	p.password = hashed
	p.epoch++
	p.dropReset()
}

// dropReset invalidates the token that sets the password of p.
func (p *person) dropReset() { p.reset, p.Resets, p.resetMailed = nil, time.Time{}, false }
