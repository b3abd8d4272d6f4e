package dashboard

import (
	"time"

	"ashlar/account"
)

// revokePage is what the template key-revoke is given.
type revokePage struct {
	Key  account.Key
	Name string
	Used time.Time
}

// revocation asks whether a key is really to be revoked.
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

// revokeKey ends a key. One that has ended stays as it is.
func (v *visit) revokeKey() error {
	k, err := v.named()
	if err != nil {
		return err
	}
	if _, err := v.own().Revoke(v.r.Context(), k.ID.String()); err != nil {
		return err
	}
	v.say(keyName(&k) + " is revoked.")
	return v.lead("/keys")
}
