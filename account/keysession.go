package account

// Session returns a stand-in for a key, for calls that the signed-in user of an account
// makes without one. It has no secret and no rules, and has the account's ID as its own;
// the account's limits apply.
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
