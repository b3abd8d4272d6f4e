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

	"ashlar/account/totp"
)

// A second factor is a device that shows one-time passwords. An account that has one needs a
// code of it to sign in, whichever way its user proved the first factor. Recovery codes
// replace the device, each once.

// Rate limit for codes of an account. Who tries them has proved the first factor already, and
// a code is one of a million, three of which are valid at a time. Recovery codes cannot be
// guessed, so they are not counted.
const (
	codesPerSecond = 1.0 / 300
	codesBurst     = 10
)

// pendingTime is how long a user may take to enter the code.
const pendingTime = 10 * time.Minute

// recoveryCodes is the number of recovery codes of an account.
const recoveryCodes = 10

// factorRecord is the JSON of a second factor in an accountRecord.
type factorRecord struct {
	Secret   totp.Secret `json:"secret"`
	Since    seconds     `json:"since"`
	Step     uint64      `json:"step"`               // the period whose code was used last
	Recovery []hash      `json:"recovery,omitempty"` // of the unused recovery codes
}

// Pending identifies a user who has proved the first factor, but not the second. Like a
// Session it is not a secret: keep it where clients cannot modify it.
type Pending string

// CodeNeeded means that a user has proved the first factor, and that [Accounts.Confirm] begins
// the session with a code of the second.
type CodeNeeded struct{ Pending Pending }

func (*CodeNeeded) Error() string { return "a code of the second factor is needed" }

// ErrCode means that a code of a second factor is wrong or was used.
var ErrCode = errors.New("this code is not valid: it may have been used, or have expired")

// enter returns a session of p, whose user has proved the first factor, or CodeNeeded.
func (a *Accounts) enter(p *person) (Session, error) {
	if p.factor == nil {
		return p.session(), nil
	}
	until := strconv.FormatInt(a.now().Add(pendingTime).Unix(), 10)
	return "", &CodeNeeded{Pending(string(p.session()) + "." + until)}
}

// Confirm begins the session of a user who has proved the first factor, with a code of the
// second or a recovery code. It returns ErrSession if the user has to begin again.
func (a *Accounts) Confirm(ctx context.Context, pending Pending, code string, address netip.Addr) (Account, Session, error) {
	session, text, _ := cutLast(string(pending), ".")
	until, err := strconv.ParseInt(text, 10, 64)
	if err != nil || a.now().Unix() >= until {
		return Account{}, "", ErrSession
	}
	known, err := a.Resume(Session(session))
	if err != nil {
		return Account{}, "", err
	}
	if err := a.attempt(address, known.Email); err != nil {
		return Account{}, "", err
	}
	p, err := a.withCode(ctx, known.ID, code, "sign in to", func(*person) error { return nil })
	if err != nil {
		return Account{}, "", err
	}
	return a.described(p), p.session(), nil
}

// cutLast divides a text at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, "", false
	}
	return text[:i], text[i+len(separator):], true
}

// withCode consumes a code of an account's second factor and edits the account in the same
// change. The code is invalid from then on, even if that cannot be stored yet.
func (a *Accounts) withCode(ctx context.Context, id ID, code, doing string, edit func(*person) error) (*person, error) {
	recovery, isRecovery := recoveryHash(code)
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
			step, ok := f.Secret.Match(code, a.now(), f.Step)
			if !ok {
				return ErrCode
			}
			f.Step = step
		}
		p.setFactor(&f)
		return edit(p)
	})
}

// setFactor sets or removes the second factor of p.
func (p *person) setFactor(f *factorRecord) {
	p.factor, p.SecondFactor, p.RecoveryCodes = f, time.Time{}, 0
	if f != nil {
		p.SecondFactor, p.RecoveryCodes = f.Since.time(), len(f.Recovery)
	}
}

// Enrol gives an account a second factor, and returns its recovery codes, which cannot be read
// again. code shows that the user's device has the secret. The password must be correct if the
// account has one. All other sessions end; the returned one begins.
func (a *Accounts) Enrol(ctx context.Context, id ID, secret totp.Secret, code, password string, address netip.Addr) (recovery []string, session Session, err error) {
	if err := secret.Check(); err != nil {
		return nil, "", invalid(FieldCode, "%v", err)
	}
	if err := a.reprove(ctx, id, password, address); err != nil {
		return nil, "", err
	}
	step, ok := secret.Match(code, a.now(), 0)
	if !ok {
		return nil, "", invalid(FieldCode, "this is not the current code: expected the six digits that your device shows, whose clock must be right")
	}
	recovery, hashes := newRecoveryCodes()
	p, err := a.change(ctx, id.String(), "add a second factor to", atOnce, func(p *person) error {
		if p.factor != nil {
			return invalid(FieldCode, "the account has a second factor already: remove it first")
		}
		p.setFactor(&factorRecord{secret, toSeconds(a.now()), step, hashes})
		p.epoch++
		return a.countChange(id)
	})
	if err != nil {
		return nil, "", err
	}
	return recovery, p.session(), nil
}

// Unenrol removes the second factor of an account, given a code and, if the account has one,
// the password.
func (a *Accounts) Unenrol(ctx context.Context, id ID, code, password string, address netip.Addr) (Account, error) {
	if err := a.reprove(ctx, id, password, address); err != nil {
		return Account{}, err
	}
	p, err := a.withCode(ctx, id, code, "remove the second factor of", func(p *person) error {
		p.setFactor(nil)
		return a.countChange(id)
	})
	if err != nil {
		return Account{}, err
	}
	return a.described(p), nil
}

// RenewRecovery replaces the recovery codes of an account, given a code and, if the account has
// one, the password.
func (a *Accounts) RenewRecovery(ctx context.Context, id ID, code, password string, address netip.Addr) (recovery []string, err error) {
	if err := a.reprove(ctx, id, password, address); err != nil {
		return nil, err
	}
	recovery, hashes := newRecoveryCodes()
	_, err = a.withCode(ctx, id, code, "renew the recovery codes of", func(p *person) error {
		f := *p.factor
		f.Recovery = hashes
		p.setFactor(&f)
		return a.countChange(id)
	})
	if err != nil {
		return nil, err
	}
	return recovery, nil
}

// ResetFactor removes the second factor of an account whose user has lost it, on behalf of an
// operator, and ends all its sessions.
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

// reprove checks the password of a signed-in user before a sensitive change, and charges an
// attempt. An account without a password has none to check.
func (a *Accounts) reprove(ctx context.Context, id ID, password string, address netip.Addr) error {
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
