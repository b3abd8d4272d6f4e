package keys

import (
	"strconv"
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// rotatePage is the data of the template key-rotate.
type rotatePage struct {
	Key  account.Key
	Name string
	Form *site.Form
}

func rotateForm() *site.Form {
	f := site.NewForm(&site.Field{
		Name: "overlap", Label: "Keep the old key valid for", Kind: site.KindSelect,
		Hint:    "Gives programs that use the key time to change it. Do not keep a key that others may know.",
		Choices: []site.Choice{{Value: "0", Label: "do not keep it"}, {Value: "1", Label: "an hour"}, {Value: "24", Label: "a day"}, {Value: "168", Label: "a week"}, {Value: "720", Label: "30 days"}},
	})
	f.Fill("overlap", "24")
	return f
}

func showRotation(v *site.Visit) error {
	k, err := liveKey(v)
	if err != nil {
		return err
	}
	return v.Show(200, "key-rotate", "Rotate a key", rotatePage{k, Name(&k), rotateForm()})
}

// liveKey returns the key named in the path if it has not ended.
func liveKey(v *site.Visit) (account.Key, error) {
	k, err := Named(v)
	if err == nil && k.Ended(time.Now()) {
		err = account.ErrNoKey
	}
	return k, err
}

// rotate handles the form of rotation.
func rotate(v *site.Visit) error {
	k, err := liveKey(v)
	if err != nil {
		return err
	}
	f := rotateForm()
	f.Read(v.R)
	hours, err := strconv.Atoi(f.Value("overlap"))
	if err != nil || !f.OK() {
		return v.Show(site.StatusOf(f), "key-rotate", "Rotate a key", rotatePage{k, Name(&k), f})
	}
	issued, err := Own(v).Rotate(v.R.Context(), k.ID.String(), time.Duration(hours)*time.Hour)
	if err != nil {
		return err
	}
	networks, err := v.Config.Networks(v.R.Context())
	if err != nil {
		return err
	}
	p := issuedPage{Issued: issued, What: "Your rotated key"}
	password := ""
	if issued.Key.Guarded {
		password = site.PasswordPlace // unchanged
	}
	p.Uses = uses(v, networks, issued.Key.Rules, issued.APIKey, password)
	if hours > 0 {
		p.Overlap = issued.Key.Overlap
	}
	return showIssued(v, p)
}
