package keys

import (
	"time"

	"ashlar/account"
	"ashlar/dashboard/site"
)

// revokePage is the data of the template key-revoke.
type revokePage struct {
	Key  account.Key
	Name string
	Used time.Time
}

// showRevocation asks for confirmation before a key is revoked.
func showRevocation(v *site.Visit) error {
	k, err := liveKey(v)
	if err != nil {
		return err
	}
	used, err := v.Config.Usage.LastUsed(v.R.Context(), k.ID)
	if err != nil {
		return err
	}
	return v.Show(200, "key-revoke", "Revoke a key", revokePage{k, Name(&k), used})
}

// revoke revokes a key. Revoking one that has ended changes nothing.
func revoke(v *site.Visit) error {
	k, err := Named(v)
	if err != nil {
		return err
	}
	revoked, err := Own(v).Revoke(v.R.Context(), k.ID.String())
	if err != nil {
		return err
	}
	v.SayDone(Name(&k)+" was revoked.", revoked.Unsaved)
	return v.Redirect(v.Path("/keys"))
}
