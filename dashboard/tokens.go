package dashboard

import (
	"errors"
	"strconv"
	"time"

	"ashlar/account"
)

// tokensPage is the data of the template tokens.
type tokensPage struct {
	Form   *form
	New    string // the text of the token just created; else empty
	Tokens []account.Token
	URL    string // of the API
}

func tokenForm() *form {
	f := newForm(
		&field{Name: "name", Label: "Name", Kind: "text", Complete: "off", Hint: "What the token is for."},
		&field{Name: "expires", Label: "Valid for", Kind: kindSelect, Choices: []choice{{"7", "a week"}, {"30", "30 days"}, {"90", "90 days"}, {"365", "a year"}}},
	)
	f.fill("expires", "90")
	return f
}

// tokens lists the account's tokens for the API.
func (v *visit) tokens() error { return v.showTokens(tokensPage{Form: tokenForm()}) }

func (v *visit) showTokens(p tokensPage) error {
	all, err := v.dashboard.config.Accounts.Tokens(v.who.ID)
	if err != nil {
		return err
	}
	p.Tokens, p.URL = all, scheme(v.r)+"://"+v.r.Host+"/api/v1/keys"
	return v.show(statusOf(p.Form), "tokens", "API tokens", p)
}

// createToken handles the form of tokens. Only this answer shows the token.
func (v *visit) createToken() error {
	p := tokensPage{Form: tokenForm()}
	p.Form.read(v.r)
	days, err := strconv.Atoi(p.Form.value("expires"))
	if err != nil || !p.Form.ok() {
		return v.showTokens(p)
	}
	text, _, err := v.dashboard.config.Accounts.CreateToken(v.r.Context(), v.who.ID, p.Form.value("name"), time.Duration(days)*24*time.Hour)
	switch {
	case err == nil:
		p.Form, p.New = tokenForm(), text
	case errors.Is(err, account.ErrTooMany):
		p.Form.Problem = sentence(err.Error())
	default:
		if err := p.Form.refused(err); err != nil {
			return err
		}
	}
	return v.showTokens(p)
}

// revokeToken ends a token.
func (v *visit) revokeToken() error {
	changed, err := v.dashboard.config.Accounts.RevokeToken(v.r.Context(), v.who.ID, v.r.PathValue("token"))
	if err != nil {
		return err
	}
	v.sayDone("The token was revoked.", changed.Unsaved)
	return v.redirect("/account/tokens")
}
