package dashboard

import (
	"time"

	"ashlar/account"
)

// revokePage is the data of the template key-revoke.
type revokePage struct {
	Key  account.Key
	Name string
	Used time.Time
}

// revocation asks for confirmation before a key is revoked.
func (v *visit) revocation() error {
	k, err := v.liveKey()
	if err != nil {
		return err
	}
	used, err := v.dashboard.config.Usage.LastUsed(v.r.Context(), k.ID)
	if err != nil {
		return err
	}
	return v.show(200, "key-revoke", "Revoke a key", revokePage{k, keyName(&k), used})
}

// revokeKey revokes a key. Revoking one that has ended changes nothing.
func (v *visit) revokeKey() error {
	k, err := v.named()
	if err != nil {
		return err
	}
	revoked, err := v.own().Revoke(v.r.Context(), k.ID.String())
	if err != nil {
		return err
	}
	v.sayDone(keyName(&k)+" was revoked.", revoked.Unsaved)
	return v.redirect("/keys")
}
