package site

// MailedPage is the data of the template mailed. It is the same whether or not the address
// has an account.
type MailedPage struct {
	Email string
	IfAny bool   // the e-mail is sent only if the address has an account
	To    string // what the link in the e-mail is for, such as "set a new password"
}

// ShowMailed asks the visitor to look for an e-mail.
func (v *Visit) ShowMailed(p MailedPage) error { return v.Show(200, "mailed", "Check your e-mail", p) }
