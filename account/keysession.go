package account

// Session returns what stands for a key in the calls that an account's person makes
// without one, being signed in. It has no text and no rules, and the ID that the account
// has; the limits of the account hold for it.
func (r *Keyring) Session(id ID) (*Key, error) {
	h, err := r.accounts.holder(id)
	if err != nil {
		return nil, err
	}
	if !h.load().Enabled() {
		return nil, ErrDisabled
	}
	return &Key{ID: KeyID(id), Owner: id, owner: h}, nil
}
