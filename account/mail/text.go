package mail

import (
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"time"

	"ashlar/account"
)

// letter is the subject and the text of a kind of letters. Lines are short enough for every
// mail program.
type letter struct {
	subject string
	page    string // to which the link leads
	text    *template.Template
}

func newLetter(subject, page, text string) letter {
	return letter{subject, page, template.Must(template.New(subject).Parse(text))}
}

// letters returns the letters by kind.
var letters = map[account.LetterKind]letter{
	account.LetterRegister: newLetter("Create your account at {host}", "/signup/confirm", `Hello,

you, or somebody who gave your address, asked for an account at {{.Host}}.
Open this page to choose a password and create it:

    {{.Link}}

The link is valid for {{.Valid}} and can be used once. If it was not you, do
nothing: without the link no account is created.
`),
	account.LetterHasOne: newLetter("Your account at {host}", "/signin", `Hello,

you, or somebody who gave your address, asked for an account at {{.Host}}.
You already have one. You can sign in here, or set a new password if you have
lost yours:

    {{.Link}}

If it was not you, do nothing. Nothing has changed.
`),
	account.LetterReset: newLetter("Set a new password at {host}", "/reset", `Hello,

you, or somebody who gave your address, asked for a new password of your account
at {{.Host}}. Open this page to set one:

    {{.Link}}

The link is valid for {{.Valid}} and can be used once. If it was not you, do
nothing: your password stays as it is.
`),
	account.LetterChange: newLetter("Confirm your new e-mail address at {host}", "/account/confirm", `Hello,

the user of an account at {{.Host}} wants to sign in with this e-mail address from
now on. Open this page to confirm it:

    {{.Link}}

The link is valid for {{.Valid}} and can be used once. If it was not you, do
nothing: the account keeps its address.
`),
	account.LetterTaken: newLetter("Your account at {host}", "/signin", `Hello,

the user of an account at {{.Host}} asked to change its e-mail address to yours.
This was refused, because you have an account with this address. You can sign in
here:

    {{.Link}}

If it was not you, do nothing. Nothing has changed.
`),
	account.LetterChanged: newLetter("The e-mail address of your account at {host} has changed", "/signin", `Hello,

your account at {{.Host}} now has the e-mail address {{.Email}}.
Sign in with that address from now on:

    {{.Link}}

If it was not you, ask the operator of {{.Host}} for help.
`),
}

// write returns the subject and the text of a letter.
func (s *Sender) write(l *account.Letter) (subject, text string, err error) {
	found, ok := letters[l.Kind]
	if !ok {
		return "", "", fmt.Errorf("unknown kind of letter %d", l.Kind)
	}
	link := *s.link
	link.Path = found.page
	if l.Token != "" {
		link.RawQuery = url.Values{"token": {l.Token}}.Encode()
	}
	var out strings.Builder
	err = found.text.Execute(&out, struct{ Host, Link, Valid, Email string }{s.link.Host, link.String(), inWords(l.Valid), l.Email})
	return strings.ReplaceAll(found.subject, "{host}", s.link.Host), out.String(), err
}

// inWords writes a duration of whole hours.
func inWords(d time.Duration) string {
	if d == time.Hour {
		return "one hour"
	}
	return fmt.Sprintf("%d hours", int(d.Hours()))
}
