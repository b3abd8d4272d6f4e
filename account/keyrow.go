package account

import (
	"errors"
	"fmt"
	"time"
)

// maxSecrets is how many texts a key has at once: its own, and the one before.
const maxSecrets = 2

// keyRecord is what is stored of a key.
type keyRecord struct {
	Name     string         `json:"name"`
	Owner    ID             `json:"owner,omitzero"`
	Created  seconds        `json:"created"`
	Secrets  []secretRecord `json:"secrets"`
	Password *hash          `json:"password,omitempty"`
	Expires  seconds        `json:"expires,omitzero"`
	Revoked  seconds        `json:"revoked,omitzero"`
	Rules    *Rules         `json:"rules,omitempty"`
}

// secretRecord is a text that a key has.
type secretRecord struct {
	Hash  hash    `json:"hash"`
	Made  seconds `json:"made"`
	Until seconds `json:"until,omitzero"` // it is the key's; 0: as long as the key is
}

// revision is a state of a key.
type revision struct {
	Key
	first   hash // of the text that the key had first: the partition of its rows
	number  uint64
	secrets []secretRecord // newest first
}

// record is what to store of k.
func (k *revision) record() keyRecord {
	return keyRecord{
		Name: k.Name, Owner: k.Owner, Created: toSeconds(k.Created), Secrets: k.secrets,
		Password: k.password, Expires: toSeconds(k.Expires), Revoked: toSeconds(k.Revoked), Rules: k.Rules,
	}
}

// describe fills in what the Key of k says of its texts and its password.
func (k *revision) describe() {
	k.Guarded = k.password != nil
	k.Rotated, k.Overlap = time.Time{}, time.Time{}
	if k.secrets[0].Hash != k.first {
		k.Rotated = k.secrets[0].Made.time()
	}
	if len(k.secrets) > 1 {
		k.Overlap = k.secrets[1].Until.time()
	}
}

// decodeKey reads a row of the key whose first text has the hash first.
func decodeKey(first hash, number uint64, value []byte) (*revision, error) {
	var record keyRecord
	err := decodeRecord(value, &record)
	if err == nil {
		err = record.check()
	}
	if err != nil {
		return nil, err
	}
	k := &revision{first: first, number: number, secrets: record.Secrets}
	k.Key = Key{
		ID: first.keyID(), Owner: record.Owner, Name: record.Name, Created: record.Created.time(),
		Expires: record.Expires.time(), Revoked: record.Revoked.time(), Rules: record.Rules, password: record.Password,
	}
	k.describe()
	return k, nil
}

// check refuses what could not have been written.
func (r *keyRecord) check() error {
	if err := checkName(r.Name); err != nil {
		return errors.Join(errors.New("the stored name is not one"), err)
	}
	if len(r.Secrets) < 1 || len(r.Secrets) > maxSecrets {
		return fmt.Errorf("%d secrets, expected from 1 to %d", len(r.Secrets), maxSecrets)
	}
	if r.Rules != nil {
		return r.Rules.check()
	}
	return nil
}
