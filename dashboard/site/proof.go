package site

import (
	"errors"
	"time"

	"ashlar/account"
)

// freshTime is how long after a sign-in the user of an account without a password may make sensitive
// changes.
const freshTime = 10 * time.Minute

// ErrStale means that the user of an account without a password signed in too long ago to make a
// sensitive change.
var ErrStale = errors.New("your account has no password that could be asked for: sign out, sign in again, and repeat this within 10 minutes")

// Fresh returns ErrStale unless the visitor's account has a password, which sensitive changes ask for,
// or the session has just begun: one that leaked must not become lasting access.
func (v *Visit) Fresh() error {
	if v.Who.Password || time.Since(v.Began()) < freshTime {
		return nil
	}
	return ErrStale
}

// CodeField asks for a code of an account's second factor. The field's name begins with a
// prefix, because a page may have several forms.
func CodeField(a *account.Account, prefix string) *Field {
	f := &Field{Name: prefix + "code", Label: "Code", Kind: "text", Once: true, Complete: "one-time-code", Hint: "The six digits that your authenticator app shows, or one of your recovery codes."}
	if !a.App {
		f.Label, f.Complete, f.Hint = "Recovery code", "off", "One of those that you got with your first passkey."
	}
	return f
}

// ProofFields asks a signed-in user to prove again who they are.
func (v *Visit) ProofFields(prefix string) (fields []*Field) {
	if !v.Who.SecondFactor.IsZero() {
		fields = append(fields, CodeField(v.Who, prefix))
	}
	if v.Who.Password {
		fields = append(fields, &Field{Name: prefix + "password", Label: "Current password", Kind: KindSecret, Complete: "current-password"})
	}
	return fields
}

// ReadProof reads a form with a CodeField. A passkey replaces the code.
func (v *Visit) ReadProof(f *Form, prefix string) (account.Proof, error) {
	answer, err := v.PasskeyAnswer()
	if code := f.Field(prefix + "code"); code != nil && answer != nil {
		code.Optional, code.Unmarked = true, true
	}
	f.Read(v.R)
	return account.Proof{Code: f.Value(prefix + "code"), Passkey: answer}, err
}

// ProvenForm is a form with ProofFields, as it was sent.
type ProvenForm struct {
	*Form
	prefix string // of the names of the proof's fields
	by     account.Reproof
	err    error // of reading the proof
}

// ReadProven reads a form with ProofFields of a prefix.
func (v *Visit) ReadProven(f *Form, prefix string) *ProvenForm {
	proof, err := v.ReadProof(f, prefix)
	if err == nil && v.Who.SecondFactor.IsZero() {
		err = v.Fresh()
	}
	return &ProvenForm{f, prefix, account.Reproof{Password: f.Value(prefix + "password"), Proof: proof, Address: Client(v.R)}, err}
}

// Act calls act with the proof, which act must check and consume, and reports whether the form has no problems
// afterwards. Otherwise it is to be shown again: a proof that is refused has become a problem of its field. If it has
// problems before, act is not called, because a proof counts once: check all other fields first.
func (p *ProvenForm) Act(act func(account.Reproof) error) (bool, error) {
	err := p.err
	if err == nil && p.OK() {
		err = act(p.by)
	}
	if err != nil {
		if err := ProofRefused(p.Form, p.prefix, err); err != nil {
			return false, err
		}
	}
	return p.OK(), nil
}

// Delete deletes an account or a team, if the form that confirms it has no problems, and reports whether
// it did. Otherwise the form is to be shown again.
func (v *Visit) Delete(f *ProvenForm, id account.ID) (bool, error) {
	return f.Act(func(by account.Reproof) error {
		if err := v.Reprove(by); err != nil {
			return err
		}
		_, err := v.Config.Accounts.Delete(v.R.Context(), id.String())
		if errors.Is(err, account.ErrLastOperator) || errors.Is(err, account.ErrLastOwner) {
			f.Problem, err = Sentence(err.Error()), nil
		}
		return err
	})
}

// ProofRefused records a wrong code, passkey or password as a problem with its field, and returns
// any other error.
func ProofRefused(f *Form, prefix string, err error) error {
	var invalid *account.Invalid
	problem, ofPasskey := PasskeyProblem(err)
	switch {
	case errors.Is(err, ErrStale):
		f.Problem = Sentence(err.Error())
	case errors.Is(err, account.ErrCredentials):
		f.Fail(prefix+"password", "This is not your current password.")
	case errors.Is(err, account.ErrCode):
		f.Fail(prefix+"code", Sentence(err.Error()))
	case ofPasskey:
		f.Fail(prefix+"code", problem)
	case errors.As(err, &invalid):
		f.Fail(prefix+string(invalid.Field), Sentence(invalid.Problem))
	default:
		return err
	}
	return nil
}
