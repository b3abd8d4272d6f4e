package signin

import (
	"errors"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// codePage is the data of the template code.
type codePage struct {
	Form    *site.Form
	Passkey string // options to use a passkey of the account; empty: it has none
}

func codeForm(a *account.Account) *site.Form {
	return site.NewForm(site.CodeField(a, ""))
}

// showCode asks for the second factor, once the first is proved.
func showCode(v *site.Visit) error {
	pending, _ := v.Pending()
	who, err := v.Config.Accounts.Confirming(pending)
	if errors.Is(err, account.ErrSession) {
		return v.Redirect("/signin")
	}
	if err != nil {
		return err
	}
	return showCodePage(v, &who, codeForm(&who))
}

func showCodePage(v *site.Visit, who *account.Account, f *site.Form) error {
	p := codePage{Form: f}
	var err error
	if p.Passkey, err = v.AskPasskey(who.ID); err != nil {
		return err
	}
	return v.Show(site.StatusOf(f), "code", "Second factor", p)
}

// takeCode handles the form of showCode.
func takeCode(v *site.Visit) error {
	pending, next := v.Pending()
	who, err := v.Config.Accounts.Confirming(pending)
	f := codeForm(&who)
	if err == nil {
		var proof account.Proof
		if proof, err = v.ReadProof(f, ""); err == nil && f.OK() {
			var session account.Session
			if _, session, err = v.Config.Accounts.Confirm(v.R.Context(), pending, proof, site.Client(v.R)); err == nil {
				return v.Enter(session, nil, next)
			}
		}
	}
	if errors.Is(err, account.ErrSession) {
		if pending != "" { // else there may be no session yet, and a message would store one
			v.Say("That took too long. Please sign in again.")
		}
		return v.Redirect("/signin")
	}
	if err != nil {
		if err := site.ProofRefused(f, "", err); err != nil {
			return err
		}
	}
	return showCodePage(v, &who, f)
}
