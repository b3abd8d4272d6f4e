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
	Form   *site.Form
	New    string // the text of the token just created; else empty
	Tokens []account.Token
	URL    string // of the API
}

func tokenForm() *site.Form {
	f := site.NewForm(
		&site.Field{Name: "name", Label: "Name", Kind: "text", Complete: "off", Hint: "What the token is for."},
		&site.Field{Name: "expires", Label: "Valid for", Kind: site.KindSelect, Choices: []site.Choice{{Value: "7", Label: "a week"}, {Value: "30", Label: "30 days"}, {Value: "90", Label: "90 days"}, {Value: "365", Label: "a year"}}},
	)
	f.Fill("expires", "90")
	return f
}

// listTokens lists the account's tokens for the API.
func listTokens(v *site.Visit) error { return showTokens(v, tokensPage{Form: tokenForm()}) }

func showTokens(v *site.Visit, p tokensPage) error {
	all, err := v.Config.Accounts.Tokens(v.Who.ID)
	if err != nil {
		return err
	}
	p.Tokens, p.URL = all, site.Scheme(v.R)+"://"+v.R.Host+"/api/v1/keys"
	return v.Show(site.StatusOf(p.Form), "tokens", "API tokens", p)
}

// createToken handles the form of tokens. Only this answer shows the token.
func createToken(v *site.Visit) error {
	p := tokensPage{Form: tokenForm()}
	p.Form.Read(v.R)
	days, err := strconv.Atoi(p.Form.Value("expires"))
	if err != nil || !p.Form.OK() {
		return showTokens(v, p)
	}
	text, _, err := v.Config.Accounts.CreateToken(v.R.Context(), v.Who.ID, p.Form.Value("name"), time.Duration(days)*24*time.Hour)
	switch {
	case err == nil:
		p.Form, p.New = tokenForm(), text
	case errors.Is(err, account.ErrTooMany):
		p.Form.Problem = site.Sentence(err.Error())
	default:
		if err := p.Form.Refused(err); err != nil {
			return err
		}
	}
	return showTokens(v, p)
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
