package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"
)

// Registration determines who may create an account.
type Registration string

// The kinds of registration.
const (
	RegistrationOpen    Registration = "open"        // anyone
	RegistrationInvited Registration = "invite-only" // anyone with an invitation
	RegistrationClosed  Registration = "closed"      // operators only
)

// Check returns an error unless r is a known kind of registration.
func (r Registration) Check() error {
	switch r {
	case RegistrationOpen, RegistrationInvited, RegistrationClosed:
		return nil
	}
	return fmt.Errorf("unknown registration %q (want %s, %s or %s)", string(r), RegistrationOpen, RegistrationInvited, RegistrationClosed)
}

// Registration returns the kind of registration in effect.
func (a *Accounts) Registration() Registration { return a.policy.Load().registration }

// Registrant is a request to register.
type Registrant struct {
	Email      string
	Password   string
	Invitation string     // token; empty: none
	Token      string     // from a letter, see RequestRegistration; replaces Email and Invitation
	Address    netip.Addr // of the client
}

// Register creates an account and begins a session of it. It consumes the invitation and
// the token, if they are given. Where addresses are verified, a token is needed. Elsewhere a
// client that is allowed to register learns whether an e-mail address has an account.
func (a *Accounts) Register(ctx context.Context, r Registrant) (Account, Session, error) {
	if err := a.attempt(r.Address, ""); err != nil {
		return Account{}, "", err
	}
	p, err := a.registrant(&r)
	if err == nil {
		err = checkPassword(p.Email, r.Password)
	}
	if err != nil {
		return Account{}, "", err
	}
	// Hash before taking the lock: it is slow.
	if p.password, err = a.hasher.Hash(ctx, r.Password); err != nil {
		return Account{}, "", err
	}
	if err := a.addRegistrant(ctx, p, r.Token); err != nil {
		return Account{}, "", err
	}
	if i, err := a.invitationUsed(p); err == nil && !i.Team.IsZero() {
		if err := a.joinNew(ctx, p); err != nil {
			slog.ErrorContext(ctx, "a new account has not joined the team that it was invited to: its user can open the invitation again", "account", p.ID, "team", i.Team, "error", err)
		}
	}
	return p.Account, p.session(), nil
}

// invitationUsed returns the invitation that an account was created with.
func (a *Accounts) invitationUsed(p *person) (Invitation, error) {
	if p.invitation == nil {
		return Invitation{}, ErrNoInvitation
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.invitations[*p.invitation], nil
}

// addRegistrant stores p as a new account, and consumes its invitation and the token, if it has them.
func (a *Accounts) addRegistrant(ctx context.Context, p *person, token string) error {
	unlock, err := a.lockToCreate(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if p.invitation != nil {
		invitation, err := a.invitationOf(*p.invitation)
		if err != nil {
			return err
		}
		if err := invitation.accepts(p.Email); err != nil {
			return err
		}
		p.Role = invitation.Role
	}
	if token == "" {
		return a.add(ctx, p)
	}
	return a.addVerified(ctx, p, token)
}

// addVerified stores p as a new account and consumes its token. The write lock is held.
func (a *Accounts) addVerified(ctx context.Context, p *person, token string) error {
	h, _, err := a.mailToken(token)
	if err != nil {
		return err // used concurrently
	}
	if a.withEmail(p.Email) != nil {
		return ErrNoLetter // another account took the address meanwhile
	}
	p.Verified = wholeSeconds(a.now())
	if err := a.add(ctx, p); err != nil {
		return err
	}
	a.forget(ctx, h)
	return nil
}

// registrant returns the account that r describes, without a password, if it may register.
func (a *Accounts) registrant(r *Registrant) (*person, error) {
	p := &person{Account: Account{Role: RoleUser}}
	if r.Token != "" || a.Mails() {
		record, err := a.registration(r.Token)
		if err != nil {
			return nil, err
		}
		p.Email, p.invitation = record.Email, record.Invitation
		if p.invitation == nil { // the setting may have changed since
			return p, a.mayRegister("")
		}
		if a.Registration() == RegistrationClosed {
			return nil, ErrClosed
		}
		return p, nil
	}
	if err := a.mayRegister(r.Invitation); err != nil {
		return nil, err
	}
	if r.Invitation != "" {
		h, _, err := a.invited(r.Invitation)
		if err != nil {
			return nil, err
		}
		p.invitation = &h
	}
	var err error
	p.Email, err = foldEmail(r.Email)
	return p, err
}

// mayRegister returns why registration with an invitation token, which may be empty, is not allowed.
func (a *Accounts) mayRegister(invitation string) error {
	switch registration := a.Registration(); {
	case registration == RegistrationClosed:
		return ErrClosed
	case invitation != "":
		_, err := a.Invitation(invitation)
		return err
	case registration == RegistrationInvited:
		return fmt.Errorf("%w: an invitation is needed", ErrClosed)
	}
	return nil
}

// NewAccount describes an account to be created by an operator.
type NewAccount struct {
	Email  string `json:"email"`
	Role   Role   `json:"role,omitempty"` // empty: RoleUser
	Limits Limits `json:"limits,omitzero"`
}

// Create creates an account without a password, whatever the registration setting, and
// returns a token that sets its password (see SetPassword). The token cannot be read again.
func (a *Accounts) Create(ctx context.Context, n NewAccount) (token string, account Account, err error) {
	email, err := foldEmail(n.Email)
	p := &person{Account: Account{Email: email, Role: cmp.Or(n.Role, RoleUser), Limits: n.Limits}}
	if err = errors.Join(err, p.Role.check()); err != nil {
		return "", Account{}, err
	}
	unlock, err := a.lockToCreate(ctx)
	if err != nil {
		return "", Account{}, err
	}
	defer unlock()
	p.ID = a.newID()
	token = p.allowReset(a.now().Add(ResetTime))
	if err := a.add(ctx, p); err != nil {
		return "", Account{}, err
	}
	return token, p.Account, nil
}

// add stores p as a new account. The write lock is held.
func (a *Accounts) add(ctx context.Context, p *person) error {
	if a.withEmail(p.Email) != nil {
		return invalid(FieldEmail, "there is an account with the e-mail address %s", p.Email)
	}
	if p.ID.IsZero() {
		p.ID = a.newID()
	}
	p.Created = wholeSeconds(a.now())
	if err := a.put(ctx, onceDurable, p, "create"); err != nil {
		return fmt.Errorf("account: create an account: %w", err)
	}
	if p.invitation != nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		i := a.invitations[*p.invitation]
		i.UsedBy = p.ID
		a.invitations[*p.invitation] = i
	}
	return nil
}

// ResetTime is how long a token to set a password is valid.
const ResetTime = 24 * time.Hour
