package account

import (
	"context"
	"time"
)

// Letter is a message that the service sends to a user.
type Letter struct {
	Kind  LetterKind
	To    string        // e-mail address
	Token string        // for the link in it; empty if it has none
	Valid time.Duration // of the token
	Email string        // the account's new e-mail address, for LetterChanged
}

// LetterKind says what a Letter is about.
type LetterKind int

// The kinds of letters.
const (
	LetterRegister LetterKind = iota + 1 // confirms an address to create an account
	LetterHasOne                         // somebody tried to register an address that has an account
	LetterReset                          // sets a new password
	LetterChange                         // confirms an account's new address
	LetterTaken                          // somebody wanted an address for another account, but it has one
	LetterChanged                        // tells the old address that the account has another
)

// Mailer sends letters. Package mail implements it.
type Mailer interface {
	// Queue calls compose on another goroutine and sends the letter that it returns, if not
	// nil. So the duration of a request does not depend on whether an account exists. It
	// returns ErrLetters if too many are waiting.
	Queue(compose func(context.Context) (*Letter, error)) error
}

// Mails reports whether e-mail addresses are verified.
func (a *Accounts) Mails() bool { return a.mailer != nil }

// Rate limits for letters. They count each client address with the address that it wrote to,
// so that a stranger cannot use up the letters of a user, each client address, so that one
// client cannot use up maxMailTokens or send many strangers a letter, and each address that
// is written to.
const (
	lettersPerSecond  = 1.0 / 600
	lettersOfOne      = 3
	lettersPerClient  = 1.0 / 60
	lettersOfClient   = 100
	lettersPerEmail   = 1.0 / 300
	lettersOfAllBurst = 10
)

// Validity of tokens in letters.
const (
	registerTime = 24 * time.Hour
	changeTime   = 24 * time.Hour
	mailedReset  = time.Hour
)
