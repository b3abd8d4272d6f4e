package profile

import (
	"errors"
	"strconv"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// tokensPage is the data of the template tokens.
type tokensPage struct {
	Form    *site.Form
	Passkey string // options to use a passkey of the account; empty: it has none
	New     string // the text of the token just created; else empty
	Tokens  []account.Token
	URL     string // of the API
}

// tokenForm also asks for what proves who the user is: a token stays valid when the sessions of the
// account end, so a session that leaked must not get one.
func tokenForm(v *site.Visit) *site.Form {
	f := site.NewForm(append([]*site.Field{
		&site.Field{Name: "name", Label: "Name", Kind: "text", Complete: "off", Hint: "What the token is for."},
		&site.Field{Name: "expires", Label: "Valid for", Kind: site.KindSelect, Choices: []site.Choice{{Value: "7", Label: "a week"}, {Value: "30", Label: "30 days"}, {Value: "90", Label: "90 days"}, {Value: "365", Label: "a year"}}},
	}, v.ProofFields("")...)...)
	f.Fill("expires", "90")
	return f
}

// listTokens lists the account's tokens for the API.
func listTokens(v *site.Visit) error { return showTokens(v, tokensPage{Form: tokenForm(v)}) }

func showTokens(v *site.Visit, p tokensPage) error {
	all, err := v.Config.Accounts.Tokens(v.Who.ID)
	if err != nil {
		return err
	}
	if p.Passkey, err = v.AskPasskey(v.Who.ID); err != nil {
		return err
	}
	p.Tokens, p.URL = all, site.Scheme(v.R)+"://"+v.R.Host+"/api/v1/keys"
	return v.Show(site.StatusOf(p.Form), "tokens", "API tokens", p)
}

// createToken handles the form of tokens. Only this answer shows the token.
func createToken(v *site.Visit) error {
	f, text := v.ReadProven(tokenForm(v), ""), ""
	created, err := f.Act(func(by account.Reproof) error {
		days, err := strconv.Atoi(f.Value("expires"))
		if err != nil {
			return site.ErrForm // it is one of the choices
		}
		text, err = newToken(v, f.Value("name"), time.Duration(days)*24*time.Hour, by)
		if errors.Is(err, account.ErrTooMany) {
			f.Problem, err = site.Sentence(err.Error()), nil
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !created:
		return showTokens(v, tokensPage{Form: f.Form})
	}
	return showTokens(v, tokensPage{Form: tokenForm(v), New: text})
}

// newToken creates a token and returns its text. A proof is consumed only if the rest is valid.
func newToken(v *site.Visit, name string, valid time.Duration, by account.Reproof) (text string, err error) {
	accounts, ctx := v.Config.Accounts, v.R.Context()
	if err := account.CheckToken(name, valid); err != nil {
		return "", err
	}
	if err := v.Reprove(by); err != nil {
		return "", err
	}
	text, _, err = accounts.CreateToken(ctx, v.Who.ID, name, valid)
	return text, err
}

// askRevocation asks for confirmation before a token is revoked. One that has ended leads back to the list.
func askRevocation(v *site.Visit) error {
	all, err := v.Config.Accounts.Tokens(v.Who.ID)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.ID == v.R.PathValue("token") {
			return v.Show(200, "token-revoke", "Revoke a token", t)
		}
	}
	return v.Redirect("/account/tokens")
}

// revokeToken ends a token.
func revokeToken(v *site.Visit) error {
	changed, err := v.Config.Accounts.RevokeToken(v.R.Context(), v.Who.ID, v.R.PathValue("token"))
	if err != nil {
		return err
	}
	v.SayDone("The token was revoked.", changed.Unsaved)
	return v.Redirect("/account/tokens")
}
