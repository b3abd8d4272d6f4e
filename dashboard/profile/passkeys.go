package profile

import (
	"encoding/base64"
	"errors"
	"time"

	"ashlar/account"
	"ashlar/account/passkey"
	"ashlar/dashboard/site"
)

// sessionMaking is the key of a session's passkey that is being made, a making as JSON.
const sessionMaking = "making"

// making is the registration of a passkey whose user has proved who they are.
type making struct {
	passkey.Ceremony
	Name string
	Of   string // ID of the account
}

// passkeysPage is the data of the template passkeys.
type passkeysPage struct {
	Passkeys []account.Passkey
	Host     string // that new ones are for; empty: the page cannot make any
	Problem  string // why it cannot
	Add      *site.Form
	Remove   *site.Form
	Codes    []string // the recovery codes just made; else empty
	Passkey  string   // options to use a passkey of the account; empty: it has none
}

// makingPage is the data of the template passkey-new.
type makingPage struct {
	Name    string
	Options string // for the browser; empty if it cannot be asked
	Problem string
}

func addPasskeyForm(v *site.Visit) *site.Form {
	f := site.NewForm(&site.Field{Name: "name", Label: "Name", Kind: "text", Complete: "off", Hint: "Which device or password manager it is on."})
	f.Fields = append(f.Fields, v.ProofFields(prefixAdd)...)
	return f
}

// encodedID is the ID of a passkey in forms.
func encodedID(id []byte) string { return base64.RawURLEncoding.EncodeToString(id) }

func removePasskeyForm(v *site.Visit, all []account.Passkey) *site.Form {
	which := &site.Field{Name: "which", Label: "Passkey", Kind: site.KindSelect}
	for _, p := range all {
		which.Choices = append(which.Choices, site.Choice{Value: encodedID(p.ID), Label: p.Name})
	}
	f := site.NewForm(which)
	f.Fields = append(f.Fields, v.ProofFields(prefixRemove)...)
	return f
}

// listPasskeys lists the account's passkeys.
func listPasskeys(v *site.Visit) error { return showPasskeys(v, passkeysPage{}) }

func showPasskeys(v *site.Visit, p passkeysPage) (err error) {
	if p.Passkeys, err = v.Config.Accounts.PasskeysOf(v.Who.ID); err != nil {
		return err
	}
	if p.Add == nil {
		p.Add = addPasskeyForm(v)
	}
	if p.Remove == nil {
		p.Remove = removePasskeyForm(v, p.Passkeys)
	}
	at, err := v.PasskeySite()
	if err != nil {
		p.Problem = site.Sentence(err.Error())
	}
	p.Host = at.Host
	if p.Passkey, err = v.AskPasskey(v.Who.ID); err != nil {
		return err
	}
	return v.Show(max(site.StatusOf(p.Add), site.StatusOf(p.Remove)), "passkeys", "Passkeys", p)
}

// addPasskey begins to make a passkey, once the user has proved who they are: otherwise a device
// would keep passkeys that are not registered.
func addPasskey(v *site.Visit) error {
	f := v.ReadProven(addPasskeyForm(v), prefixAdd)
	proved, err := f.Act(func(by account.Reproof) error {
		if err := account.CheckPasskeyName(f.Value("name")); err != nil {
			return f.Refused(err)
		}
		return v.Reprove(by)
	})
	switch {
	case err != nil:
		return err
	case !proved:
		return showPasskeys(v, passkeysPage{Add: f.Form})
	}
	return makePasskey(v, f.Value("name"))
}

// makePasskey asks the browser to make a passkey.
func makePasskey(v *site.Visit, name string) error {
	at, err := v.PasskeySite()
	if err != nil {
		return showPasskeys(v, passkeysPage{})
	}
	all, err := v.Config.Accounts.PasskeysOf(v.Who.ID)
	if err != nil {
		return err
	}
	var ids [][]byte
	for _, p := range all {
		if p.Host == at.Host {
			ids = append(ids, p.ID)
		}
	}
	m := making{passkey.Begin(at, time.Now()), name, v.Who.ID.String()}
	options, err := m.Creation(at.Host, passkey.User{ID: v.Who.ID[:], Name: v.Who.Email}, ids)
	if err != nil {
		return err
	}
	if err := v.PutCeremony(sessionMaking, m); err != nil {
		return err
	}
	return v.Show(200, "passkey-new", "Add a passkey", makingPage{Name: name, Options: options})
}

// takeMadePasskey registers the passkey that the browser made.
func takeMadePasskey(v *site.Visit) error {
	var m making // an empty one has no answer
	if err := v.PopCeremony(sessionMaking, &m); err != nil {
		return err
	}
	if m.Of != v.Who.ID.String() {
		m = making{}
	}
	made, err := m.Registered(v.R.PostForm.Get("passkey"), time.Now())
	var codes []string
	var session account.Session
	if err == nil {
		codes, session, err = v.Config.Accounts.AddPasskey(v.R.Context(), v.Who.ID, m.Name, m.Site.Host, made)
	}
	if err != nil {
		return makingFailed(v, &m, err)
	}
	if err := v.Continue(session); err != nil {
		return err
	}
	now, err := v.Config.Accounts.Find(v.Who.ID.String())
	if err != nil {
		return err
	}
	v.Who = &now
	if codes == nil {
		v.SayDone("The passkey was added.", now.Unsaved)
		return v.Redirect("/account/passkeys")
	}
	return showPasskeys(v, passkeysPage{Codes: codes})
}

// makingFailed explains why a passkey was not registered.
func makingFailed(v *site.Visit, m *making, err error) error {
	problem, known := site.PasskeyProblem(err)
	var invalid *account.Invalid
	switch {
	case known:
		v.Config.Log.InfoContext(v.R.Context(), "a new passkey is refused", "error", err)
	case errors.As(err, &invalid), errors.Is(err, account.ErrTooMany):
		problem = site.Sentence(err.Error())
	default:
		return err
	}
	return v.Show(422, "passkey-new", "Add a passkey", makingPage{Name: m.Name, Problem: problem})
}

// removePasskey removes a passkey.
func removePasskey(v *site.Visit) error {
	all, err := v.Config.Accounts.PasskeysOf(v.Who.ID)
	if err != nil {
		return err
	}
	f := v.ReadProven(removePasskeyForm(v, all), prefixRemove)
	var changed account.Account
	removed, err := f.Act(func(by account.Reproof) error {
		id, err := base64.RawURLEncoding.DecodeString(f.Value("which"))
		if err != nil {
			return site.ErrForm // it is one of the choices
		}
		changed, err = v.Config.Accounts.RemovePasskey(v.R.Context(), v.Who.ID, id, by)
		return err
	})
	switch {
	case err != nil:
		return err
	case !removed:
		return showPasskeys(v, passkeysPage{Remove: f.Form})
	}
	v.SayDone("The passkey was removed. Remove it from the device or password manager, too.", changed.Unsaved)
	return v.Redirect("/account/passkeys")
}
