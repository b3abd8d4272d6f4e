package account

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"ashlar/kv"
	"ashlar/limit"
)

// mailTokens holds the open tokens that were sent to e-mail addresses, to create an account
// or to change the address of one. The partition is the SHA-256 of the token, the sort key
// 0, the record a mailTokenRecord. A token that was used or has expired is dropped.
var mailTokens = &kv.Table{ID: 0x46, Name: "mail_tokens", Kind: kv.Versions, Transient: true}

// maxMailTokens bounds how many tokens are open at once.
const maxMailTokens = 10_000

// mailTokenRecord is the JSON of a row of mailTokens.
type mailTokenRecord struct {
	Email      string  `json:"email"`
	Account    ID      `json:"account,omitzero"`     // whose address is to change; zero: a new account
	Epoch      uint64  `json:"epoch,omitempty"`      // of Account's sessions, with which the token ends
	Invitation *hash   `json:"invitation,omitempty"` // of a new account
	Until      seconds `json:"until"`
}

// ErrNoLetter means that a token from a letter is unknown, was used or has expired.
var ErrNoLetter = fmt.Errorf("%w: request another one", ErrReset)

// readMailTokens reads the tokens that are still valid.
func (a *Accounts) readMailTokens(ctx context.Context) error {
	all, err := newest(ctx, a.rows.store, mailTokens, len(hash{}))
	if err != nil {
		return err
	}
	open := make(map[hash]mailTokenRecord, len(all))
	for partition, row := range all {
		var r mailTokenRecord
		if err := decodeRecord(row.value, &r); err != nil {
			slog.Error("a token that was sent by e-mail cannot be read, and is not valid", "error", err)
			continue
		}
		open[hash([]byte(partition))] = r
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mailTokens = open
	return nil
}

// addMailToken stores a new token and returns it.
func (a *Accounts) addMailToken(ctx context.Context, r mailTokenRecord, valid time.Duration) (string, error) {
	a.write.Lock()
	defer a.write.Unlock()
	if err := a.dropMailTokens(ctx); err != nil {
		return "", err
	}
	if len(a.mailTokens) >= maxMailTokens {
		return "", fmt.Errorf("account: %w e-mails wait to be answered: expected at most %d", ErrTooMany, maxMailTokens)
	}
	token := newSecret()
	h, _ := hashOf(token)
	r.Until = toSeconds(a.now().Add(valid))
	if err := a.rows.write(ctx, place{mailTokens, string(h[:])}, 0, r, nil); err != nil {
		return "", fmt.Errorf("account: store a token: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mailTokens[h] = r
	return token, nil
}

// dropMailTokens drops expired tokens. The write lock is held.
func (a *Accounts) dropMailTokens(ctx context.Context) error {
	for h, r := range a.mailTokens { // changed only under the write lock
		if !a.now().Before(r.Until.time()) {
			if err := a.dropMailToken(ctx, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// dropMailToken ends a token. It is not valid any more even if it cannot be dropped from the
// store. The write lock is held.
func (a *Accounts) dropMailToken(ctx context.Context, h hash) error {
	a.mu.Lock()
	delete(a.mailTokens, h)
	a.mu.Unlock()
	err := a.rows.store.Drop(ctx, mailTokens, h[:])
	if err == nil {
		err = a.rows.store.Sync(ctx)
	}
	if err != nil {
		return fmt.Errorf("account: drop a token: %w", err)
	}
	return nil
}

// mailToken returns what a token is for, or ErrNoLetter.
func (a *Accounts) mailToken(token string) (h hash, r mailTokenRecord, err error) {
	h, ok := hashOf(token)
	if !ok {
		return h, r, ErrNoLetter
	}
	a.mu.RLock()
	defer a.mu.RUnlock()
	r, ok = a.mailTokens[h]
	if !ok || !a.now().Before(r.Until.time()) {
		return h, r, ErrNoLetter
	}
	return h, r, nil
}

// countLetter charges a letter to an address, requested by a client, to the rate limits. The
// result does not depend on whether an account has the address.
func (a *Accounts) countLetter(by guesser) error {
	now := a.now()
	if err := spend(a.byAddress, now, by.network, "attempts"); err != nil {
		return err
	}
	if err := spend(a.lettersBy, now, by, "e-mails"); err != nil {
		return err
	}
	if err := spend(a.lettersOf, now, by.network, "e-mails"); err != nil {
		return err
	}
	return spend(a.lettersTo, now, by.email, "e-mails")
}

// RequestRegistration sends a letter to an e-mail address with a token for Register. If the
// address has an account, the letter says so instead; the caller does not learn that.
func (a *Accounts) RequestRegistration(ctx context.Context, r Registrant) error {
	if err := a.mayRegister(r.Invitation); err != nil {
		if soon := a.attempt(r.Address, ""); soon != nil {
			return soon
		}
		return err
	}
	email, err := foldEmail(r.Email)
	if err != nil {
		return err
	}
	record := mailTokenRecord{Email: email}
	if r.Invitation != "" {
		h, invitation, err := a.invited(r.Invitation)
		if err == nil {
			err = invitation.accepts(email)
		}
		if err != nil {
			return err
		}
		record.Invitation = &h
	}
	if err := a.countLetter(guesser{email, limit.Network(r.Address)}); err != nil {
		return err
	}
	return a.mailer.Queue(func(ctx context.Context) (*Letter, error) {
		if a.withEmail(email) != nil {
			return &Letter{Kind: LetterHasOne, To: email}, nil
		}
		token, err := a.addMailToken(ctx, record, registerTime)
		return &Letter{Kind: LetterRegister, To: email, Token: token, Valid: registerTime}, err
	})
}

// Registering returns the e-mail address for which a token from RequestRegistration creates
// an account, or ErrNoLetter. It does not consume the token.
func (a *Accounts) Registering(token string) (email string, err error) {
	r, err := a.registration(token)
	return r.Email, err
}

// registration returns what a token from RequestRegistration is for, or ErrNoLetter.
func (a *Accounts) registration(token string) (mailTokenRecord, error) {
	_, r, err := a.mailToken(token)
	if err != nil || !r.Account.IsZero() {
		return mailTokenRecord{}, ErrNoLetter
	}
	return r, nil
}

// RequestReset sends a letter with a token for SetPassword to an e-mail address, if it has
// an enabled account. The caller does not learn whether it has.
func (a *Accounts) RequestReset(ctx context.Context, email string, by netip.Addr) error {
	folded, err := foldEmail(email)
	if err != nil {
		return err
	}
	if err := a.countLetter(guesser{folded, limit.Network(by)}); err != nil {
		return err
	}
	return a.mailer.Queue(func(ctx context.Context) (*Letter, error) {
		if p := a.withEmail(folded); p == nil || !p.Enabled() {
			return nil, nil
		}
		var token string
		_, err := a.change(ctx, folded, "reset the password of", onceDurable, func(p *person) error {
			token = p.allowReset(a.now().Add(mailedReset))
			p.resetMailed = true
			return nil
		})
		return &Letter{Kind: LetterReset, To: folded, Token: token, Valid: mailedReset}, err
	})
}

// RequestChange sends a letter to a new e-mail address of an account, with a token for
// ConfirmChange, if the password is correct. If the new address has an account, the letter
// says so; the caller does not learn that.
func (a *Accounts) RequestChange(ctx context.Context, id ID, password, email string, by netip.Addr) error {
	h, err := a.holder(id)
	if err != nil {
		return err
	}
	folded, err := foldEmail(email)
	if err != nil {
		return err
	}
	own := h.load().Email
	if folded == own {
		return invalid(FieldEmail, "this is the account's e-mail address already")
	}
	if err := a.attempt(by, own); err != nil {
		return err
	}
	proved, err := a.prove(ctx, own, password)
	if err != nil {
		return err
	}
	if err := a.countLetter(guesser{folded, limit.Network(by)}); err != nil {
		return err
	}
	if err := a.countChange(id); err != nil {
		return err
	}
	return a.mailer.Queue(func(ctx context.Context) (*Letter, error) {
		if h.load().Email != own {
			return nil, nil // another request was confirmed meanwhile, see Changing
		}
		if a.withEmail(folded) != nil {
			return &Letter{Kind: LetterTaken, To: folded}, nil
		}
		token, err := a.addMailToken(ctx, mailTokenRecord{Email: folded, Account: id, Epoch: proved.epoch}, changeTime)
		return &Letter{Kind: LetterChange, To: folded, Token: token, Valid: changeTime}, err
	})
}

// Changing returns the account and its new e-mail address that a token from RequestChange
// confirms, or ErrNoLetter. It does not consume the token. The token ends with the sessions of its
// account, because a thief of the password may have requested it, and when the account gets another
// address meanwhile, because it may have been sent to a misspelled one.
func (a *Accounts) Changing(token string) (owner Account, email string, err error) {
	_, r, err := a.mailToken(token)
	if err != nil || r.Account.IsZero() {
		return Account{}, "", ErrNoLetter
	}
	h, err := a.holder(r.Account)
	if err != nil {
		return Account{}, "", ErrNoLetter
	}
	p := h.load()
	requested := r.Until.time().Add(-changeTime)
	if !p.Enabled() || p.epoch != r.Epoch || requested.Before(p.Verified) {
		return Account{}, "", ErrNoLetter
	}
	return p.Account, r.Email, nil
}

// ConfirmChange consumes a token from RequestChange and changes the e-mail address of its
// account. It notifies the old address if letters can be sent.
func (a *Accounts) ConfirmChange(ctx context.Context, token string, by netip.Addr) (Account, error) {
	if err := a.attempt(by, ""); err != nil {
		return Account{}, err
	}
	owner, email, err := a.Changing(token)
	if err != nil {
		return Account{}, err
	}
	if err := a.learn(ctx); err != nil {
		return Account{}, err
	}
	changed, err := a.changed(ctx, owner.ID.String(), "change the e-mail address of", onceDurable, func(p *person) error {
		if err := a.catchUpIfUncertain(ctx); err != nil {
			return err
		}
		if _, _, err := a.Changing(token); err != nil || a.withEmail(email) != nil {
			return ErrNoLetter // used concurrently, or the address has an account now
		}
		p.Email, p.Verified = email, wholeSeconds(a.now())
		if p.resetMailed { // to the old address
			p.dropReset()
		}
		return nil
	})
	if err != nil {
		return Account{}, err
	}
	if h, ok := hashOf(token); ok {
		a.write.Lock()
		a.forget(ctx, h)
		a.write.Unlock()
	}
	a.notifyOld(owner.Email, email)
	return changed, nil
}

// notifyOld sends a letter to the old address of an account. The change is durable, so it
// does not fail if the letter cannot be queued.
func (a *Accounts) notifyOld(old, email string) {
	if a.mailer == nil {
		return // the configuration has changed since the token was sent
	}
	err := a.mailer.Queue(func(context.Context) (*Letter, error) {
		return &Letter{Kind: LetterChanged, To: old, Email: email}, nil
	})
	if err != nil {
		slog.Error("the old e-mail address of an account is not notified of the change", "error", err)
	}
}

// forget drops a token that was used. If the store refuses that, the token is useless all
// the same: its address has an account. The write lock is held.
func (a *Accounts) forget(ctx context.Context, h hash) {
	if err := a.dropMailToken(context.WithoutCancel(ctx), h); err != nil {
		slog.Error("a used token stays in the store until it expires", "error", err)
	}
}
