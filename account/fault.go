package account

import (
	"errors"
	"fmt"
	"math"
	"time"

	"ashlar/limit"
)

// Kinds of errors. Errors that wrap them give the details.
var (
	// ErrNoKey means that no key has the given ID or name.
	ErrNoKey = errors.New("no such key")
	// ErrAmbiguous means that several live keys have the given name.
	ErrAmbiguous = errors.New("more than one live key has this name")
	// ErrNoAccount means that no account has the given ID or e-mail address.
	ErrNoAccount = errors.New("no such account")
	// ErrNoTeam means that no team has the given ID or name, or that an account is not a member.
	ErrNoTeam = errors.New("no such team")
	// ErrTeam means that an account is a team's, which has nothing to sign in with.
	ErrTeam = errors.New("the account is a team's, and nobody signs in to it")
	// ErrNoInvitation means that no invitation has the given ID or token, or that it
	// was used, was withdrawn or has expired.
	ErrNoInvitation = errors.New("this invitation is not valid: it may have been used, withdrawn, or have expired")
	// ErrUnreadable means that something cannot be changed because its newest row cannot be
	// read.
	ErrUnreadable = errors.New("its stored row cannot be read")
	// ErrCredentials means that no account has this e-mail address and password.
	ErrCredentials = errors.New("the e-mail address or the password is wrong")
	// ErrDisabled means that an operator has disabled the account.
	ErrDisabled = errors.New("this account is disabled: contact the operator of this service")
	// ErrToken means that a token for the API is not valid.
	ErrToken = errors.New("this token is not valid: it may have been revoked, or have expired (want Authorization: Bearer and a token of the dashboard)")
	// ErrSession means that a session has ended.
	ErrSession = errors.New("this session has ended: sign in again")
	// ErrReset means that a token to set a password is unknown, was used or has
	// expired.
	ErrReset = errors.New("this link is not valid: it may have been used, or have expired")
	// ErrClosed means that registration is closed, or needs an invitation.
	ErrClosed = errors.New("registration is closed")
	// ErrLetters means that too many letters are waiting to be sent.
	ErrLetters = errors.New("too many e-mails are waiting to be sent: try again later")
	// ErrTooMany means that an account has reached its maximum number of something.
	ErrTooMany = errors.New("too many")
	// ErrLastOperator means that an account cannot be deleted because no other operator's can
	// be used.
	ErrLastOperator = errors.New("this is the only operator's account: make another account an operator's first")
	// ErrLastOwner means that a team has no other owner who can sign in.
	ErrLastOwner = errors.New("the account is the only owner")
	// ErrFormat means that a store was written by another version, or is not a store of accounts.
	ErrFormat = errors.New("account: unknown format")
)

// Field names a form field.
type Field string

// The fields that an Invalid can name.
const (
	FieldEmail    Field = "email"
	FieldPassword Field = "password"
	FieldName     Field = "name"
	FieldRole     Field = "role"
	FieldRules    Field = "rules"
	FieldExpires  Field = "expires"
	FieldOverlap  Field = "overlap"
	FieldCode     Field = "code"
	FieldIdentity Field = "identity"
)

// Invalid describes invalid user input and what is expected instead.
type Invalid struct {
	Field   Field
	Problem string
}

func (e *Invalid) Error() string { return e.Problem }

func invalid(f Field, format string, args ...any) error {
	return &Invalid{f, fmt.Sprintf(format, args...)}
}

// TooSoon means that a rate limit was exceeded.
type TooSoon struct {
	What string        // what was limited, such as "attempts"
	Wait time.Duration // when to retry
}

func (e *TooSoon) Error() string {
	return fmt.Sprintf("too many %s: try again in %s", e.What, roundedUp(e.Wait))
}

// roundedUp writes a time to wait, at least as long, in the unit that suits it.
func roundedUp(d time.Duration) string {
	switch {
	case d <= 2*time.Minute:
		return fmt.Sprintf("%.0f s", math.Ceil(d.Seconds()))
	case d <= 2*time.Hour:
		return fmt.Sprintf("%.0f minutes", math.Ceil(d.Minutes()))
	}
	return fmt.Sprintf("%.0f hours", math.Ceil(d.Hours()))
}

// spend charges one use to key, and returns a TooSoon if its rate limit is exceeded.
func spend[K any](counted interface {
	Spend(now time.Time, key K) (limit.Excess, bool)
}, now time.Time, key K, what string) error {
	if excess, ok := counted.Spend(now, key); !ok {
		return &TooSoon{what, excess.Wait}
	}
	return nil
}
