package account

import (
	"encoding/json"
	"fmt"
	"time"
)

// maxSecrets is how many secrets a key can have at once: the current and the previous one.
const maxSecrets = 2

// keyRecord is the JSON of a row of keyRevisions.
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

// secretRecord is a secret of a key.
type secretRecord struct {
	Hash  hash    `json:"hash"`
	Made  seconds `json:"made"`
	Until seconds `json:"until,omitzero"` // when it stops working; 0: valid as long as the key is
}

// revision is one revision of a key. It is immutable once stored in a keys.
type revision struct {
	Key
	first   hash // of the key's first secret: the partition of its rows
	number  uint64
	secrets []secretRecord // newest first
}

// place returns the place of the key's rows.
func (k *revision) place() place { return place{keyRevisions, string(k.first[:])} }

// record returns the row to store for k.
func (k *revision) record() keyRecord {
	return keyRecord{
		Name: k.Name, Owner: k.Owner, Created: toSeconds(k.Created), Secrets: k.secrets,
		Password: k.password, Expires: toSeconds(k.Expires), Revoked: toSeconds(k.Revoked), Rules: k.Rules,
	}
}

// describe sets the fields of k.Key that follow from its secrets and password.
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

// decodeKey decodes a row of the key whose first secret has the hash first.
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

// check rejects records that record cannot have produced.
func (r *keyRecord) check() error {
	if err := checkName(r.Name); err != nil {
		return fmt.Errorf("the stored name: %w", err)
	}
	if len(r.Secrets) < 1 || len(r.Secrets) > maxSecrets {
		return fmt.Errorf("%d secrets, expected from 1 to %d", len(r.Secrets), maxSecrets)
	}
	if r.Rules != nil {
		return r.Rules.Check()
	}
	return nil
}

// unreadableKey returns what is known of a key whose newest row has a fault. The key can
// still be revoked, which stores a new row.
func unreadableKey(first hash, row row, fault error) *revision {
	var r keyRecord
	if len(row.value) > 0 {
		_ = json.Unmarshal(row.value[1:], &r) // as far as it goes
	}
	if checkName(r.Name) != nil {
		r.Name = ""
	}
	k := &revision{first: first, number: row.number, secrets: []secretRecord{{Hash: first, Made: r.Created}}}
	k.Key = Key{ID: first.keyID(), Owner: r.Owner, Name: r.Name, Created: r.Created.time(), Revoked: r.Revoked.time(), Unreadable: fault.Error()}
	return k
}
