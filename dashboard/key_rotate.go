package dashboard

import (
	"strconv"
	"time"

	"ashlar/account"
)

// rotatePage is the data of the template key-rotate.
type rotatePage struct {
	Key  account.Key
	Name string
	Form *form
}

func rotateForm() *form {
	f := newForm(&field{
		Name: "overlap", Label: "Keep the old key valid for", Kind: kindSelect,
		Hint:    "Gives programs that use the key time to change it.",
		Choices: []choice{{"0", "do not keep it (others may know it)"}, {"1", "an hour"}, {"24", "a day"}, {"168", "a week"}, {"720", "30 days"}},
	})
	f.fill("overlap", "24")
	return f
}

func (v *visit) rotation() error {
	k, err := v.liveKey()
	if err != nil {
		return err
	}
	return v.show(200, "key-rotate", "Rotate a key", rotatePage{k, keyName(&k), rotateForm()})
}

// liveKey returns the key named in the path if it has not ended.
func (v *visit) liveKey() (account.Key, error) {
	k, err := v.named()
	if err == nil && k.Ended(time.Now()) {
		err = account.ErrNoKey
	}
	return k, err
}

// rotateKey handles the form of rotation.
func (v *visit) rotateKey() error {
	k, err := v.liveKey()
	if err != nil {
		return err
	}
	f := rotateForm()
	f.read(v.r)
	hours, err := strconv.Atoi(f.value("overlap"))
	if err != nil || !f.ok() {
		return v.show(statusOf(f), "key-rotate", "Rotate a key", rotatePage{k, keyName(&k), f})
	}
	issued, err := v.own().Rotate(v.r.Context(), k.ID.String(), time.Duration(hours)*time.Hour)
	if err != nil {
		return err
	}
	networks, err := v.dashboard.config.Networks(v.r.Context())
	if err != nil {
		return err
	}
	p := issuedPage{Issued: issued, What: "Your rotated key"}
	password := ""
	if issued.Key.Guarded {
		password = passwordPlace // unchanged
	}
	p.Uses = v.uses(networks, issued.Key.Rules, issued.APIKey, password)
	if hours > 0 {
		p.Overlap = issued.Key.Overlap
	}
	return v.showIssued(p)
}
