package account

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"ashlar/account/passkey"
	"ashlar/account/totp"
)

// A second factor is an authenticator app or a passkey. An account that has one needs it to sign
// in, whichever way its user proved the first factor: a code of the app, or a passkey. Recovery
// codes replace both, each once.

// Rate limit for codes of an account. A client that tries codes has the first factor, and a code
// is one of a million, three of which are valid at a time. Recovery codes cannot be
// guessed, so they are not counted.
const (
	codesPerSecond = 1.0 / 300
	codesBurst     = 10
)

// pendingTime is how long a user may take to enter the code.
const pendingTime = 10 * time.Minute

// recoveryCodes is the number of recovery codes of an account.
const recoveryCodes = 10

// factorRecord is the JSON of the second factors in an accountRecord. It has an app, a passkey,
// or both.
type factorRecord struct {
	Secret   totp.Secret     `json:"secret,omitempty"` // of the app; empty: none
	Since    seconds         `json:"since"`
	Step     uint64          `json:"step,omitempty"`    // the period whose code was used last
	Recovery []hash          `json:"recovery,omitzero"` // of the unused recovery codes
	Passkeys []passkeyRecord `json:"passkeys,omitzero"` // never changed in place
	// Answered is the challenges that were answered and have not expired; never changed in place. An answer is a change of
	// the account, so the limit of changes bounds it.
	Answered []answeredRecord `json:"answered,omitempty"`
}

// answeredRecord is a challenge that a passkey has answered.
type answeredRecord struct {
	Challenge hash    `json:"challenge"`
	Until     seconds `json:"until"`
}

// check returns an error unless f is one that this package writes.
func (f *factorRecord) check() error {
	if f.Secret != "" || len(f.Passkeys) == 0 {
		if err := f.Secret.Check(); err != nil {
			return err
		}
	}
	for i := range f.Passkeys {
		if err := f.Passkeys[i].check(); err != nil {
			return err
		}
	}
	return nil
}

// Pending identifies a user whose first factor is checked, but not the second. Like a Session
// it is not a secret: keep it where clients cannot modify it.
type Pending string

// CodeNeeded means that the first factor is right, and that the account has a second one:
// [Accounts.Confirm] checks it.
type CodeNeeded struct{ Pending Pending }

func (*CodeNeeded) Error() string { return "the second factor is needed" }

// Proof proves a second factor: a code of the app, a recovery code, or an answer of a passkey.
type Proof struct {
	Code    string
	Passkey *passkey.Answer // nil: Code counts
}

// Reproof is what a signed-in user proves again before a sensitive change, because a session
// that leaked must not become lasting access.
type Reproof struct {
	Password string // if the account has one
	Proof    Proof  // if the account has a second factor
	Address  netip.Addr
}

// ErrCode means that a code of a second factor is wrong or was used.
var ErrCode = errors.New("this code is not valid: it may have been used, or have expired")

// enter returns a session of p, or CodeNeeded. The first factor is checked.
func (a *Accounts) enter(p *person) (Session, error) {
	if p.factor == nil {
		return p.session(), nil
	}
	until := strconv.FormatInt(a.now().Add(pendingTime).Unix(), 10)
	return "", &CodeNeeded{Pending(string(p.session()) + "." + until)}
}

// Confirm checks the second factor of a pending user, and begins the session. It returns
// ErrSession if the user must sign in from the start.
func (a *Accounts) Confirm(ctx context.Context, pending Pending, proof Proof, address netip.Addr) (Account, Session, error) {
	known, err := a.Confirming(pending)
	if err != nil {
		return Account{}, "", err
	}
	if err := a.attempt(address, known.Email); err != nil {
		return Account{}, "", err
	}
	p, err := a.withProof(ctx, known.ID, proof, "sign in to", func(*person) error {
		if proof.Passkey != nil {
			return a.countChange(known.ID)
		}
		return nil // codes are limited
	})
	if err != nil {
		return Account{}, "", err
	}
	return a.described(p), p.session(), nil
}

// Confirming returns the account of a pending user, or ErrSession.
func (a *Accounts) Confirming(pending Pending) (Account, error) {
	session, text, _ := cutLast(string(pending), ".")
	until, err := strconv.ParseInt(text, 10, 64)
	if err != nil || a.now().Unix() >= until {
		return Account{}, ErrSession
	}
	return a.Resume(Session(session))
}

// cutLast divides a text at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// withProof consumes a proof of an account's second factor and edits the account in the same
// change. The proof is invalid from then on, even if that cannot be stored yet.
func (a *Accounts) withProof(ctx context.Context, id ID, proof Proof, doing string, edit func(*person) error) (*person, error) {
	if proof.Passkey != nil {
		return a.withPasskey(ctx, id, proof.Passkey, doing, edit)
	}
	recovery, isRecovery := recoveryHash(proof.Code)
	if !isRecovery {
		if err := spend(a.byCode, a.now(), id, "codes"); err != nil {
			return nil, err
		}
	}
	return a.change(ctx, id.String(), doing, atOnce, func(p *person) error {
		if p.factor == nil {
			return ErrCode // removed concurrently
		}
		if !p.Enabled() {
			return ErrDisabled
		}
		f := *p.factor
		if isRecovery {
			i := slices.Index(f.Recovery, recovery)
			if i < 0 {
				return ErrCode
			}
			f.Recovery = slices.Delete(slices.Clone(f.Recovery), i, i+1)
		} else {
			step, ok := f.match(proof.Code, a.now())
			if !ok {
				return ErrCode
			}
			f.Step = step
		}
		p.setFactor(&f)
		return edit(p)
	})
}

// match returns the period of a valid code of the app.
func (f *factorRecord) match(code string, now time.Time) (step uint64, ok bool) {
	if f.Secret == "" {
		return 0, false
	}
	return f.Secret.Match(code, now, f.Step)
}

// setFactor sets or removes the second factors of p.
func (p *person) setFactor(f *factorRecord) {
	if f != nil && f.Secret == "" && len(f.Passkeys) == 0 {
		f = nil
	}
	p.factor, p.SecondFactor, p.App, p.Passkeys, p.RecoveryCodes = f, time.Time{}, false, 0, 0
	if f != nil {
		p.SecondFactor, p.App, p.Passkeys, p.RecoveryCodes = f.Since.time(), f.Secret != "", len(f.Passkeys), len(f.Recovery)
	}
}

// addFactor edits the second factors of an account, after Reprove. The first one comes with
// recovery codes, which cannot be read again, and ends all other sessions.
func (a *Accounts) addFactor(ctx context.Context, id ID, doing string, edit func(*factorRecord) error) (recovery []string, session Session, err error) {
	recovery, hashes := newRecoveryCodes()
	p, err := a.change(ctx, id.String(), doing, atOnce, func(p *person) error {
		f := factorRecord{Since: toSeconds(a.now()), Recovery: hashes}
		if p.factor != nil {
			f, recovery = *p.factor, nil
		} else {
			p.epoch++
		}
		if err := edit(&f); err != nil {
			return err
		}
		p.setFactor(&f)
		return a.countChange(id)
	})
	if err != nil {
		return nil, "", err
	}
	return recovery, p.session(), nil
}

// Reprove checks the password and the second factor of a signed-in user before a sensitive change,
// as far as the account has them. It consumes by.Proof.
func (a *Accounts) Reprove(ctx context.Context, id ID, by Reproof) error {
	if err := a.provePassword(ctx, id, by.Password, by.Address); err != nil {
		return err
	}
	return a.proveFactor(ctx, id, by.Proof)
}

// proveFactor consumes a proof of the second factor of an account that has one.
func (a *Accounts) proveFactor(ctx context.Context, id ID, proof Proof) error {
	h, err := a.holder(id)
	if err != nil || h.load().factor == nil {
		return err
	}
	_, err = a.withProof(ctx, id, proof, "prove the second factor of", func(*person) error { return a.countChange(id) })
	return err
}

// Enrol gives an account an authenticator app. code shows that it has the secret. The first
// second factor comes with recovery codes, which cannot be read again, and ends all other
// sessions; the returned one goes on.
func (a *Accounts) Enrol(ctx context.Context, id ID, secret totp.Secret, code string, by Reproof) (recovery []string, session Session, err error) {
	if err := secret.Check(); err != nil {
		return nil, "", invalid(FieldCode, "%v", err)
	}
	if err := a.provePassword(ctx, id, by.Password, by.Address); err != nil {
		return nil, "", err
	}
	step, ok := secret.Match(code, a.now(), 0)
	if !ok {
		return nil, "", invalid(FieldCode, "this is not the current code: expected the six digits that your device shows, whose clock must be right")
	}
	if err := a.proveFactor(ctx, id, by.Proof); err != nil {
		return nil, "", err
	}
	return a.addFactor(ctx, id, "add an authenticator app to", func(f *factorRecord) error {
		if f.Secret != "" {
			return invalid(FieldCode, "the account has an authenticator app already: remove it first")
		}
		f.Secret, f.Step = secret, step
		return nil
	})
}

// Unenrol removes the authenticator app of an account.
func (a *Accounts) Unenrol(ctx context.Context, id ID, by Reproof) (Account, error) {
	return a.editFactor(ctx, id, by, "remove the authenticator app of", func(f *factorRecord) error {
		f.Secret, f.Step = "", 0
		return nil
	})
}

// RenewRecovery replaces the recovery codes of an account.
func (a *Accounts) RenewRecovery(ctx context.Context, id ID, by Reproof) (recovery []string, err error) {
	recovery, hashes := newRecoveryCodes()
	_, err = a.editFactor(ctx, id, by, "renew the recovery codes of", func(f *factorRecord) error {
		f.Recovery = hashes
		return nil
	})
	if err != nil {
		return nil, err
	}
	return recovery, nil
}

// editFactor edits the second factors of an account that has some, given proofs.
func (a *Accounts) editFactor(ctx context.Context, id ID, by Reproof, doing string, edit func(*factorRecord) error) (Account, error) {
	if err := a.provePassword(ctx, id, by.Password, by.Address); err != nil {
		return Account{}, err
	}
	p, err := a.withProof(ctx, id, by.Proof, doing, func(p *person) error {
		f := *p.factor
		if err := edit(&f); err != nil {
			return err
		}
		p.setFactor(&f)
		return a.countChange(id)
	})
	if err != nil {
		return Account{}, err
	}
	return a.described(p), nil
}

// ResetFactor removes the authenticator app and the passkeys of an account whose user has lost
// them, on behalf of an operator, and ends all its sessions.
func (a *Accounts) ResetFactor(ctx context.Context, idOrEmail string) (Account, error) {
	return a.changed(ctx, idOrEmail, "reset the second factor of", onceDurable, func(p *person) error {
		if p.factor == nil {
			return invalid(FieldCode, "the account has no second factor")
		}
		p.setFactor(nil)
		p.epoch++
		return nil
	})
}

// provePassword checks the password of a signed-in user before a sensitive change, and charges an
// attempt. An account without a password has none to check.
func (a *Accounts) provePassword(ctx context.Context, id ID, password string, address netip.Addr) error {
	h, err := a.holder(id)
	if err != nil {
		return err
	}
	p := h.load()
	if err := a.attempt(address, p.Email); err != nil || !p.Account.Password {
		return err
	}
	_, err = a.prove(ctx, p.Email, password)
	return err
}

// A recovery code is 16 characters of base32, 80 random bits, in four groups.
const recoveryLen = 16

// newRecoveryCodes returns recovery codes and what is stored of them.
func newRecoveryCodes() (codes []string, hashes []hash) {
	for range recoveryCodes {
		var b [recoveryLen * 5 / 8]byte
		_, _ = rand.Read(b[:]) // documented never to fail
		text := strings.ToLower(base32.StdEncoding.EncodeToString(b[:]))
		code := text[:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:]
		h, _ := recoveryHash(code)
		codes, hashes = append(codes, code), append(hashes, h)
	}
	return codes, hashes
}

// recoveryHash returns the hash of a typed recovery code, and false if it does not have the
// form of one.
func recoveryHash(typed string) (hash, bool) {
	text := strings.ToLower(strings.NewReplacer("-", "", " ", "").Replace(strings.TrimSpace(typed)))
	if len(text) != recoveryLen {
		return hash{}, false
	}
	return sumOf(text), true
}
