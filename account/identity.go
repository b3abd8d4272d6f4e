package account

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"ashlar/account/oidc"
)

// identityRecord is the JSON of a user's identity at an OpenID Connect provider, in an
// accountRecord.
type identityRecord struct {
	Issuer  string `json:"issuer"`
	Subject string `json:"subject"`
}

// Provided says whose first sign-in with a provider creates an account.
type Provided struct {
	Create  bool     // users without an account get one
	Domains []string // only those with e-mail addresses in these domains; empty: all
}

// Kinds of errors of sign-ins with a provider.
var (
	// ErrNotLinked means that the account with the user's address cannot be linked
	// automatically: its address was never verified, so its password may be another person's.
	ErrNotLinked = errors.New("an account has this e-mail address: sign in with its password, and connect the provider on the page of the account")
	// ErrNotProvided means that a user of the provider has no account and gets none.
	ErrNotProvided = errors.New("you have no account here: ask the operator of this service for one")
	// ErrUnverified means that the provider has not verified the user's address.
	ErrUnverified = errors.New("the provider has not verified your e-mail address")
)

// Arrive begins a session of the user whom a provider has authenticated, after MayBegin. The
// first time, the user's account is found by its e-mail address, which both the provider and this
// service must have verified, or is created if policy says so.
func (a *Accounts) Arrive(ctx context.Context, who oidc.Identity, policy Provided) (Account, Session, error) {
	p, err := a.arrived(ctx, who, policy)
	if err != nil {
		return Account{}, "", err
	}
	if !p.Enabled() {
		return Account{}, "", ErrDisabled
	}
	session, err := a.enter(p)
	return a.described(p), session, err
}

// arrived returns the account of an identity.
func (a *Accounts) arrived(ctx context.Context, who oidc.Identity, policy Provided) (*person, error) {
	identity := identityRecord{who.Issuer, who.Subject}
	if p := a.withIdentity(identity); p != nil {
		return p, nil
	}
	if !who.Verified {
		return nil, ErrUnverified
	}
	email, err := foldEmail(who.Email)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnverified, err)
	}
	if p := a.withEmail(email); p != nil {
		return a.linkByEmail(ctx, p.ID, identity, email)
	}
	_, domain, _ := strings.Cut(email, "@")
	if !policy.Create || len(policy.Domains) > 0 && !slices.Contains(policy.Domains, domain) {
		return nil, ErrNotProvided
	}
	p := &person{Account: Account{Email: email, Role: RoleUser, Verified: wholeSeconds(a.now())}}
	p.setIdentity(&identity)
	unlock, err := a.lockToCreate(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if other := a.withIdentity(identity); other != nil {
		return other, nil // created concurrently
	}
	if err := a.add(ctx, p); err != nil {
		return nil, err
	}
	return p, nil
}

// linkByEmail links an account to an identity whose verified address it has. A link to another issuer,
// which is not the provider any more, is replaced.
func (a *Accounts) linkByEmail(ctx context.Context, id ID, identity identityRecord, email string) (*person, error) {
	return a.change(ctx, id.String(), "connect a provider to", onceDurable, func(p *person) error {
		switch {
		case !p.Enabled():
			return ErrDisabled
		case p.Email != email || p.identity != nil && p.identity.Issuer == identity.Issuer || p.Verified.IsZero() && p.password != "":
			return ErrNotLinked
		}
		p.setIdentity(&identity)
		p.Verified = wholeSeconds(a.now())
		return nil
	})
}

// MayLink returns nil if a signed-in user may connect a provider: the password must be correct
// if the account has one, because a session that leaked must not become lasting access.
func (a *Accounts) MayLink(ctx context.Context, id ID, password string, address netip.Addr) error {
	return a.provePassword(ctx, id, password, address)
}

// Link links the account of a session to an identity, after MayLink. It returns ErrSession if the
// session has ended since: the user may have been at the provider for long.
func (a *Accounts) Link(ctx context.Context, of Session, who oidc.Identity) (Account, error) {
	known, err := a.Resume(of)
	if err != nil {
		return Account{}, err
	}
	identity := identityRecord{who.Issuer, who.Subject}
	return a.changed(ctx, known.ID.String(), "connect a provider to", onceDurable, func(p *person) error {
		if !p.Enabled() || p.session() != of {
			return ErrSession // ended concurrently
		}
		if other := a.withIdentity(identity); other != nil && other.ID != p.ID {
			return invalid(FieldIdentity, "this user of the provider is connected to another account")
		}
		p.setIdentity(&identity)
		return a.countChange(p.ID)
	})
}

// Unlink ends the link of an account to an identity, given the password, which is needed to
// sign in from then on.
func (a *Accounts) Unlink(ctx context.Context, id ID, password string, address netip.Addr) (Account, error) {
	h, err := a.holder(id)
	if err != nil {
		return Account{}, err
	}
	if !h.load().Account.Password {
		return Account{}, invalid(FieldPassword, "the account has no password: set one first, so that you can still sign in")
	}
	if err := a.provePassword(ctx, id, password, address); err != nil {
		return Account{}, err
	}
	return a.changed(ctx, id.String(), "disconnect the provider of", atOnce, func(p *person) error {
		p.setIdentity(nil)
		return a.countChange(id)
	})
}

// setIdentity sets or removes the identity of p.
func (p *person) setIdentity(i *identityRecord) {
	p.identity, p.Provider = i, ""
	if i != nil {
		p.Provider = i.Issuer
	}
}

// withIdentity returns the account with an identity, or nil.
func (a *Accounts) withIdentity(i identityRecord) *person {
	a.mu.RLock()
	defer a.mu.RUnlock()
	if h := a.identities[i]; h != nil {
		return h.load()
	}
	return nil
}
