package account

import (
	"context"
	"crypto/subtle"
	"net/netip"
	"sync/atomic"
	"time"
)

// FirstTime is how long a token that creates the first operator is valid.
const FirstTime = 24 * time.Hour

// firstToken creates the first operator. It is kept in memory only: a restart makes
// another one.
type firstToken struct {
	hash  hash
	until time.Time
}

// first holds the open token; it is nil if there is none.
type first struct{ atomic.Pointer[firstToken] }

// AllowFirst returns a token with which [Accounts.CreateFirst] creates the first operator,
// or ok false if there is an operator. It invalidates an earlier token. The token cannot be
// read again.
func (a *Accounts) AllowFirst() (token string, until time.Time, ok bool) {
	if a.hasOperator() {
		return "", time.Time{}, false
	}
	token = newSecret()
	h, _ := hashOf(token)
	until = wholeSeconds(a.now().Add(FirstTime))
	a.first.Store(&firstToken{h, until})
	return token, until, true
}

// AwaitsFirst reports whether a token of [Accounts.AllowFirst] can be used.
func (a *Accounts) AwaitsFirst() bool {
	t := a.first.Load()
	return t != nil && a.now().Before(t.until) && !a.hasOperator()
}

// First returns ErrReset unless a token creates the first operator. It does not consume the
// token.
func (a *Accounts) First(token string) error {
	h, ok := hashOf(token)
	t := a.first.Load()
	if !ok || t == nil || subtle.ConstantTimeCompare(h[:], t.hash[:]) != 1 || !a.AwaitsFirst() {
		return ErrReset
	}
	return nil
}

// CreateFirst consumes a token of [Accounts.AllowFirst], creates the first operator and
// begins a session of it, whatever the registration setting.
func (a *Accounts) CreateFirst(ctx context.Context, token, email, password string, address netip.Addr) (Account, Session, error) {
	if err := a.attempt(address, ""); err != nil {
		return Account{}, "", err
	}
	if err := a.First(token); err != nil {
		return Account{}, "", err
	}
	email, err := foldEmail(email)
	if err == nil {
		err = checkPassword(email, password)
	}
	if err != nil {
		return Account{}, "", err
	}
	p := &person{Account: Account{Email: email, Role: RoleOperator}}
	// Hash before taking the lock: it is slow.
	if p.password, err = a.hasher.Hash(ctx, password); err != nil {
		return Account{}, "", err
	}
	unlock, err := a.lockToCreate(ctx)
	if err != nil {
		return Account{}, "", err
	}
	defer unlock()
	if err := a.First(token); err != nil { // used concurrently
		return Account{}, "", err
	}
	if err := a.add(ctx, p); err != nil {
		return Account{}, "", err
	}
	a.first.Store(nil)
	return p.Account, p.session(), nil
}

// hasOperator reports whether an account has the role of an operator, even if it is
// disabled or cannot be read.
func (a *Accounts) hasOperator() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for _, h := range a.people {
		if p := h.load(); p.Role == RoleOperator || p.Unreadable != "" {
			return true
		}
	}
	return false
}
