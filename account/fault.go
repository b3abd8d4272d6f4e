package account

import (
	"errors"
	"fmt"
	"math"
	"time"

	"ashlar/limit"
)

// Kinds of errors. What exactly is wrong is in the text of the errors that hold them.
var (
	// ErrNoKey says that nothing has the given ID or name.
	ErrNoKey = errors.New("no such key")
	// ErrAmbiguous says that several live keys have the given name.
	ErrAmbiguous = errors.New("more than one live key has this name")
	// ErrNoAccount says that no account has the given ID or e-mail address.
	ErrNoAccount = errors.New("no such account")
	// ErrNoInvitation says that nothing has the given ID or token, or that the
	// invitation was used, withdrawn or has expired.
	ErrNoInvitation = errors.New("this invitation is not valid: it may have been used, withdrawn, or have expired")
	// ErrCredentials says that nobody has this e-mail address and password.
	ErrCredentials = errors.New("the e-mail address or the password is wrong")
	// ErrDisabled says that an operator has disabled the account.
	ErrDisabled = errors.New("this account is disabled: ask whoever runs this service")
	// ErrSession says that a session is over.
	ErrSession = errors.New("this session is over: sign in again")
	// ErrReset says that a password cannot be set with a token: it was used, has
	// expired, or is none.
	ErrReset = errors.New("this link is not valid: it may have been used, or have expired")
	// ErrClosed says that people cannot register, or not without an invitation.
	ErrClosed = errors.New("registration is closed")
	// ErrTooMany says that somebody has as many of something as they may have.
	ErrTooMany = errors.New("too many")
	// ErrFormat says that a store was written by another version, or holds no accounts.
	ErrFormat = errors.New("account: unknown format")
)

// Field is what something wrong was typed into.
type Field string

// The fields in which something can be wrong.
const (
	FieldEmail    Field = "email"
	FieldPassword Field = "password"
	FieldName     Field = "name"
	FieldRole     Field = "role"
	FieldRules    Field = "rules"
	FieldExpires  Field = "expires"
	FieldOverlap  Field = "overlap"
)

// Invalid is what is wrong with something that somebody has typed, and how it is right.
type Invalid struct {
	Field   Field
	Problem string
}

func (e *Invalid) Error() string { return e.Problem }

func invalid(f Field, format string, args ...any) error {
	return &Invalid{f, fmt.Sprintf(format, args...)}
}

// TooSoon says that somebody does something too often.
type TooSoon struct {
	What string        // there was too much of, such as attempts
	Wait time.Duration // after which it may be tried again
}

func (e *TooSoon) Error() string {
	return fmt.Sprintf("too many %s: try again in %.0f s", e.What, math.Ceil(e.Wait.Seconds()))
}

// spend counts one of what there may not be too much of against a key, or says that
// there was.
func spend[K any](counted interface {
	Spend(now time.Time, key K) (limit.Excess, bool)
}, now time.Time, key K, what string) error {
	if excess, ok := counted.Spend(now, key); !ok {
		return &TooSoon{what, excess.Wait}
	}
	return nil
}
