package site

import (
	"encoding/json"
	"errors"
	"time"

	"ashlar/account"
	"ashlar/account/passkey"
)

// sessionCeremony is the key of a session's use of a passkey that has begun, as JSON.
const sessionCeremony = "ceremony"

// fieldPasskey is the form field with a passkey's answer, which a script fills in.
const fieldPasskey = "passkey"

// PasskeySite returns what passkeys are bound to on the page that the visitor sees, or
// passkey.ErrSite.
func (v *Visit) PasskeySite() (passkey.Site, error) { return passkey.SiteOf(Scheme(v.R), v.R.Host) }

// AskPasskey begins a use of one of an account's passkeys, and returns the options for the
// browser, empty if none of them is for this site.
func (v *Visit) AskPasskey(id account.ID) (options string, err error) {
	at, err := v.PasskeySite()
	if err != nil {
		return "", nil // no passkey is for it
	}
	all, err := v.Config.Accounts.PasskeysOf(id)
	if err != nil {
		return "", err
	}
	var ids [][]byte
	for _, p := range all {
		if p.Host == at.Host && p.Copied.IsZero() {
			ids = append(ids, p.ID)
		}
	}
	if len(ids) == 0 {
		return "", nil
	}
	c := passkey.Begin(at, time.Now())
	if options, err = c.OneOf(ids); err != nil {
		return "", err
	}
	return options, v.PutCeremony(sessionCeremony, c)
}

// AskAnyPasskey begins a use of a passkey of an account that is not known yet.
func (v *Visit) AskAnyPasskey() (options string, err error) {
	at, err := v.PasskeySite()
	if err != nil {
		return "", err
	}
	c := passkey.Begin(at, time.Now())
	if options, err = c.Any(); err != nil {
		return "", err
	}
	return options, v.PutCeremony(sessionCeremony, c)
}

// PasskeyAnswer returns the answer to the use of a passkey that has begun, nil if the form has
// none. An answer is valid once.
func (v *Visit) PasskeyAnswer() (*passkey.Answer, error) {
	text := v.R.PostForm.Get(fieldPasskey)
	if text == "" {
		return nil, nil
	}
	var c passkey.Ceremony // an empty one has no answer
	if err := v.PopCeremony(sessionCeremony, &c); err != nil {
		return nil, err
	}
	return c.Answered(text, time.Now())
}

// PasskeyProblem returns the text for users of an error about a passkey, false for any other
// error.
func PasskeyProblem(err error) (text string, ok bool) {
	for _, known := range []error{passkey.ErrLate, passkey.ErrAnswer, account.ErrPasskey, account.ErrUnverifiedUser, account.ErrCopied, account.ErrDisabled} {
		if errors.Is(err, known) {
			return Sentence(known.Error()), true // the details are about the protocol
		}
	}
	if errors.Is(err, passkey.ErrSite) {
		return Sentence(err.Error()), true
	}
	return "", false
}

// PutCeremony keeps a ceremony in the session as JSON.
func (v *Visit) PutCeremony(key string, ceremony any) error {
	text, err := json.Marshal(ceremony)
	if err != nil {
		return err
	}
	v.Sessions.Put(v.R.Context(), key, string(text))
	return nil
}

// PopCeremony takes a ceremony out of the session. Without one, ceremony stays as it is.
func (v *Visit) PopCeremony(key string, ceremony any) error {
	text := v.Sessions.PopString(v.R.Context(), key)
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), ceremony)
}
