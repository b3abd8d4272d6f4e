package account

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"ashlar/account/passkey"
)

// A passkey whose authenticator verifies the user, by a PIN or a finger, proves both factors. Any
// other is a second factor only.

// maxPasskeys is the greatest number of passkeys of an account.
const maxPasskeys = 20

// Kinds of errors of passkeys.
var (
	// ErrPasskey means that an account does not have the passkey, or that it did not sign.
	ErrPasskey = errors.New("this passkey is not registered here")
	// ErrUnverifiedUser means that a passkey proves the second factor only.
	ErrUnverifiedUser = errors.New("your device did not verify that it is you: sign in with your password, and use the passkey as the second factor")
	// ErrCopied means that a passkey is blocked.
	ErrCopied = errors.New("this passkey is blocked, because its counter shows that a copy of it is in use: sign in in another way, remove it, and register a new one")
)

// passkeyRecord is the JSON of a passkey in a factorRecord.
type passkeyRecord struct {
	ID     []byte            `json:"id"`
	Key    passkey.PublicKey `json:"key"`
	Host   string            `json:"host"`
	Name   string            `json:"name"`
	Since  seconds           `json:"since"`
	Used   seconds           `json:"used,omitzero"`
	Count  uint32            `json:"count,omitempty"`
	Alone  bool              `json:"alone,omitempty"`
	Copied seconds           `json:"copied,omitzero"`
}

// check returns an error unless r is one that this package writes.
func (r *passkeyRecord) check() error {
	if len(r.ID) == 0 || len(r.ID) > passkey.MaxID {
		return fmt.Errorf("a passkey whose ID has %d bytes (want 1 to %d)", len(r.ID), passkey.MaxID)
	}
	return r.Key.Check()
}

// Passkey describes a passkey of an account. Times are whole seconds, UTC.
type Passkey struct {
	ID     []byte
	Host   string // of the dashboard, for which it was made
	Name   string
	Since  time.Time
	Used   time.Time // zero: never
	Copied time.Time // since when it is blocked because a copy exists; zero: it is not
	// Alone says that it replaces the password, too; otherwise it is a second factor only.
	Alone bool
}

// PasskeysOf returns the passkeys of an account, oldest first.
func (a *Accounts) PasskeysOf(id ID) ([]Passkey, error) {
	h, err := a.holder(id)
	if err != nil || h.load().factor == nil {
		return nil, err
	}
	var all []Passkey
	for _, r := range h.load().factor.Passkeys {
		all = append(all, Passkey{r.ID, r.Host, r.Name, r.Since.time(), r.Used.time(), r.Copied.time(), r.Alone})
	}
	return all, nil
}

// CheckPasskeyName returns an error unless a passkey may have the name.
func CheckPasskeyName(name string) error {
	if name == "" {
		return invalid(FieldName, "the passkey has no name: expected which device it is on")
	}
	return checkName(name)
}

// AddPasskey registers a passkey of a signed-in user, after Reprove. The first second
// factor comes with recovery codes, as of Enrol.
func (a *Accounts) AddPasskey(ctx context.Context, id ID, name, host string, made passkey.Credential) (recovery []string, session Session, err error) {
	if err := CheckPasskeyName(name); err != nil {
		return nil, "", err
	}
	r := passkeyRecord{ID: made.ID, Key: made.Key, Host: host, Name: name, Since: toSeconds(a.now()), Count: made.Count, Alone: made.Alone}
	if err := r.check(); err != nil {
		return nil, "", fmt.Errorf("%w: %w", ErrPasskey, err)
	}
	return a.addFactor(ctx, id, "add a passkey to", func(f *factorRecord) error {
		if len(f.Passkeys) >= maxPasskeys {
			return fmt.Errorf("%w: the account has %d passkeys, and may have %d: remove one first", ErrTooMany, len(f.Passkeys), maxPasskeys)
		}
		if f.passkey(r.ID, host) >= 0 {
			return invalid(FieldName, "this passkey is registered already")
		}
		f.Passkeys = append(slices.Clone(f.Passkeys), r)
		return nil
	})
}

// RemovePasskey removes a passkey of an account.
func (a *Accounts) RemovePasskey(ctx context.Context, id ID, passkey []byte, by Reproof) (Account, error) {
	return a.editFactor(ctx, id, by, "remove a passkey of", func(f *factorRecord) error {
		f.Passkeys = slices.DeleteFunc(slices.Clone(f.Passkeys), func(r passkeyRecord) bool { return bytes.Equal(r.ID, passkey) })
		return nil
	})
}

// passkey returns the index of the passkey with an ID that was made for a host, -1 if there is
// none.
func (f *factorRecord) passkey(id []byte, host string) int {
	if f == nil {
		return -1
	}
	return slices.IndexFunc(f.Passkeys, func(r passkeyRecord) bool { return bytes.Equal(r.ID, id) && r.Host == host })
}

// SignInWithPasskey begins a session of the user whom a passkey names and whose device verified
// them. That proves both factors.
func (a *Accounts) SignInWithPasskey(ctx context.Context, answer *passkey.Answer, address netip.Addr) (Account, Session, error) {
	var id ID
	email := ""
	if len(answer.User) == len(id) {
		id = ID(answer.User)
		if h, err := a.holder(id); err == nil {
			email = h.load().Email
		}
	}
	if err := a.attempt(address, email); err != nil {
		return Account{}, "", err
	}
	if !answer.Verified {
		return Account{}, "", ErrUnverifiedUser
	}
	p, err := a.withPasskey(ctx, id, answer, "sign in to", func(*person) error { return a.countChange(id) })
	if err != nil {
		return Account{}, "", err
	}
	return a.described(p), p.session(), nil
}

// MayBegin charges the beginning of a sign-in with a passkey or a provider to the rate limits. It
// stores a session, before anybody has proved anything.
func (a *Accounts) MayBegin(address netip.Addr) error { return a.attempt(address, "") }

// withPasskey records the use of a passkey and edits its account in the same change.
func (a *Accounts) withPasskey(ctx context.Context, id ID, answer *passkey.Answer, doing string, edit func(*person) error) (*person, error) {
	h, err := a.holder(id)
	if err != nil {
		return nil, ErrPasskey
	}
	f := h.load().factor
	i := f.passkey(answer.ID, answer.Host)
	if i < 0 || !answer.SignedBy(f.Passkeys[i].Key) {
		return nil, ErrPasskey
	}
	key := f.Passkeys[i].Key
	p, err := a.change(ctx, id.String(), doing, atOnce, func(p *person) error {
		i := p.factor.passkey(answer.ID, answer.Host)
		switch {
		case i < 0 || !bytes.Equal(p.factor.Passkeys[i].Key, key):
			return ErrPasskey // removed concurrently
		case !p.Enabled():
			return ErrDisabled
		case p.factor.isAnswered(answer.Challenge): // before the counter is compared: the same answer, sent twice, does not come from a copy
			return passkey.ErrLate
		case p.factor.Passkeys[i].Copied != 0 || answer.Copied(p.factor.Passkeys[i].Count):
			return ErrCopied
		}
		p.editPasskey(i, func(r *passkeyRecord) { r.Count, r.Used = answer.Count, toSeconds(a.now()) })
		p.factor.answer(answer.Challenge, a.now())
		return edit(p)
	})
	if errors.Is(err, ErrCopied) {
		return nil, a.blockPasskey(ctx, id, answer)
	}
	return p, err
}

// isAnswered reports whether an answer to a challenge was accepted. A session forgets its challenge with the first
// answer, but two requests that arrive at the same time, also at two processes, both begin with the session as it was
// before.
func (f *factorRecord) isAnswered(challenge string) bool {
	sum := sumOf(challenge)
	return slices.ContainsFunc(f.Answered, func(r answeredRecord) bool { return r.Challenge == sum })
}

// answer records that a challenge was answered.
func (f *factorRecord) answer(challenge string, now time.Time) {
	over := func(r answeredRecord) bool { return !now.Before(r.Until.time()) }
	f.Answered = append(slices.DeleteFunc(slices.Clone(f.Answered), over), answeredRecord{sumOf(challenge), toSeconds(now.Add(passkey.Time))})
}

// blockPasskey blocks a passkey whose counter shows that a copy exists: one of the two is not the
// user's. It returns ErrCopied.
func (a *Accounts) blockPasskey(ctx context.Context, id ID, answer *passkey.Answer) error {
	_, err := a.change(ctx, id.String(), "block a copied passkey of", atOnce, func(p *person) error {
		i := p.factor.passkey(answer.ID, answer.Host)
		if i < 0 || p.factor.Passkeys[i].Copied != 0 {
			return ErrCopied // removed or blocked already
		}
		p.editPasskey(i, func(r *passkeyRecord) { r.Copied = toSeconds(a.now()) })
		return nil
	})
	if err != nil {
		return err
	}
	return ErrCopied
}

// editPasskey edits a copy of a passkey of p.
func (p *person) editPasskey(i int, edit func(*passkeyRecord)) {
	f := *p.factor
	f.Passkeys = slices.Clone(f.Passkeys)
	edit(&f.Passkeys[i])
	p.setFactor(&f)
}
