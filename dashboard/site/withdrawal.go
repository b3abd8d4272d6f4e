package site

import (
	"cmp"

	"ashlar/account"
)

// withdrawalPage is the data of the template invitation-withdraw.
type withdrawalPage struct {
	account.Invitation
	For    string
	As     string // the role, for one to a team with its name
	Back   string // path of the list
	Action string // path of the form
}

// ShowWithdrawal asks for confirmation before an invitation is withdrawn.
func (v *Visit) ShowWithdrawal(i account.Invitation, as, list string) error {
	return v.Show(200, "invitation-withdraw", "Withdraw an invitation", withdrawalPage{i, cmp.Or(i.Email, "anybody"), as, list, v.R.URL.Path})
}
