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
	"ashlar/limit"
)

// Session says that somebody is signed in, for as long as the account's sessions are not
// ended. It is no secret that proves anything: whoever keeps it must keep it where
// nobody else can write.
type Session string

// session is a session of p that begins now.
func (p *person) session() Session {
	return Session(p.ID.String() + "." + strconv.FormatUint(p.epoch, 10))
}

// ErrBusy says that too many people sign in at once.
var ErrBusy = password.ErrBusy

// SignIn begins a session for whoever knows the password of an account. Everybody else
// gets the same answer after the same work, whether there is an account or not, but
// the account's person is told when it is disabled.
func (a *Accounts) SignIn(ctx context.Context, email, password string, address netip.Addr) (Account, Session, error) {
	folded, err := foldEmail(email)
	if err != nil {
		folded = "" // no account's; it is checked like any other
	}
	if err := a.attempt(address, folded); err != nil {
		return Account{}, "", err
	}
	p, err := a.prove(ctx, folded, password)
	if err != nil {
		return Account{}, "", err
	}
	return p.Account, p.session(), nil
}

// attempt counts an attempt to be somebody, or says that there were too many. email may
// be empty. What one client has tried too often is not counted against the account, so
// that it cannot keep the account's person out.
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

// prove returns the account that has an e-mail address and a password.
func (a *Accounts) prove(ctx context.Context, email, password string) (*person, error) {
	p := a.withEmail(email)
	stored := ""
	if p != nil {
		stored = p.password
	}
	if len(password) > maxPassword {
		password = "" // nobody's
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

// rehash stores the hash of a password that somebody has just proved to know anew.
func (a *Accounts) rehash(ctx context.Context, p *person, password string) (*person, error) {
	hashed, err := a.hasher.Hash(ctx, password)
	if err != nil {
		return nil, err
	}
	return a.change(ctx, p.ID.String(), "hash the password anew of", func(now *person) error {
		if now.password != p.password {
			return ErrCredentials // it has just been changed
		}
		now.password = hashed
		return nil
	})
}

// Begin begins a session of an account whose person has been found out in another way
// than by a password.
func (a *Accounts) Begin(id ID) (Account, Session, error) {
	h, err := a.holder(id)
	if err != nil {
		return Account{}, "", err
	}
	p := h.load()
	if !p.Enabled() {
		return Account{}, "", ErrDisabled
	}
	return p.Account, p.session(), nil
}

// Resume returns the account of a session as it is now, or ErrSession.
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
	if !p.Enabled() || epoch != strconv.FormatUint(p.epoch, 10) {
		return Account{}, ErrSession
	}
	return p.Account, nil
}

// EndSessions ends all sessions of an account, for its person.
func (a *Accounts) EndSessions(ctx context.Context, idOrEmail string) (Account, error) {
	return a.changed(ctx, idOrEmail, "end the sessions of", func(p *person) error {
		p.epoch++
		return a.countChange(p.ID)
	})
}

// ChangePassword gives an account another password, for whoever knows the one it has.
// It ends all sessions of the account, and begins the one that it returns.
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
		return "", fmt.Errorf("%w: the present password is not this one", ErrCredentials)
	}
	if err != nil {
		return "", err
	}
	hashed, err := a.hasher.Hash(ctx, changed)
	if err != nil {
		return "", err
	}
	p, err := a.change(ctx, id.String(), "change the password of", func(p *person) error {
		if p.password != proved.password {
			return ErrCredentials // it has just been changed by somebody else
		}
		p.setPassword(hashed)
		return nil
	})
	if err != nil {
		return "", err
	}
	return p.session(), nil
}

// Reset makes a token with which somebody can set a new password for an account once,
// until a time; one that was made before is none any more. The password that the account
// has works until then.
func (a *Accounts) Reset(ctx context.Context, idOrEmail string) (token string, until time.Time, err error) {
	p, err := a.change(ctx, idOrEmail, "reset the password of", func(p *person) error {
		token = p.allowReset(a.now().Add(ResetTime))
		return nil
	})
	if err != nil {
		return "", time.Time{}, err
	}
	return token, p.Resets, nil
}

// SetPassword sets the password of the account that a token is for, which is used up,
// ends all sessions of the account and begins one.
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
	p, err := a.change(ctx, owner.ID.String(), "set the password of", func(p *person) error {
		if !p.resets(token, a.now()) {
			return ErrReset // it has just been used
		}
		if !p.Enabled() {
			return ErrDisabled
		}
		p.setPassword(hashed)
		return nil
	})
	if err != nil {
		return Account{}, "", err
	}
	return p.Account, p.session(), nil
}

// Resetting returns the account whose password can be set with a token, or ErrReset. It
// uses nothing up.
func (a *Accounts) Resetting(token string) (Account, error) {
	var id ID
	if len(token) > 2*len(id) && id.UnmarshalText([]byte(token[:2*len(id)])) == nil {
		if h, err := a.holder(id); err == nil && h.load().resets(token, a.now()) {
			return h.load().Account, nil
		}
	}
	return Account{}, ErrReset
}

// allowReset returns a new token with which the password of p may be set: the ID of the
// account and a secret.
func (p *person) allowReset(until time.Time) string {
	secret := newSecret()
	h, _ := hashOf(secret)
	p.reset, p.Resets = &h, wholeSeconds(until)
	return p.ID.String() + secret
}

// resets says whether the password of p may be set with a token.
func (p *person) resets(token string, now time.Time) bool {
	secret, ok := strings.CutPrefix(token, p.ID.String())
	h, made := hashOf(secret)
	return ok && made && p.reset != nil && now.Before(p.Resets) && subtle.ConstantTimeCompare(h[:], p.reset[:]) == 1
}

// setPassword makes hashed the password of p, and everything before that void.
func (p *person) setPassword(hashed string) {
	p.password = hashed
	p.epoch++
	p.reset, p.Resets = nil, time.Time{}
}
