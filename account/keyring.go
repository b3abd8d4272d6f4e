package account

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/kv"
)

// Keyring gives access to the API keys of a store, or to those of one account
// ([Keyring.Of]). All keys are also held in memory, where Check finds them: a change made
// through a Keyring takes effect at once in this process, and in other processes when they
// next call Refresh or open the store. A Keyring is safe for concurrent use.
type Keyring struct {
	*keyStore
	only *ID // account; nil: all keys
}

// keyStore is shared by all Keyrings of a store.
type keyStore struct {
	accounts *Accounts
	now      func() time.Time
	keys     atomic.Pointer[keys] // replaced as a whole; immutable
	write    sync.Mutex           // held while keys is replaced
	seen     []byte               // by Refresh, of the pointer; guarded by write

	refreshing refreshing // used by Refresh only
}

// keys indexes the current revisions of keys.
type keys struct {
	byFirst  map[hash]*revision // by the hash of the first secret
	bySecret map[hash]allowed   // keys that are not revoked, by their current secrets
}

// allowed is what a secret gives access to.
type allowed struct {
	key   *revision
	until seconds // when the secret stops working; 0: valid as long as the key is
}

// OpenKeyring reads the keys from the store of accounts.
func OpenKeyring(ctx context.Context, accounts *Accounts) (*Keyring, error) {
	r := &Keyring{keyStore: &keyStore{accounts: accounts, now: accounts.now, refreshing: refreshing{read: time.Now(), readAgain: readAgain}}}
	all, err := r.load(ctx, new(keys))
	if err != nil {
		return nil, err
	}
	r.keys.Store(all)
	accounts.keys = r.keyStore
	return r, nil
}

// newestKeys reads the newest row of each key, and when a key was revoked, by any of its revisions.
func newestKeys(ctx context.Context, store kv.Store) (newest map[string]row, ended map[string]seconds, err error) {
	ended = make(map[string]seconds)
	newest, err = newestOf(ctx, store, keyRevisions, len(hash{}), func(r kv.Row) {
		if at := revoked(r.Value); at != 0 {
			ended[string(r.Partition)] = at
		}
	})
	return newest, ended, err
}

// load reads all keys. Those of before that have the same revision or a newer one stay, but for those that could not be
// read: their accounts may have been created after the accounts were read, and before the keys were.
func (s *keyStore) load(ctx context.Context, before *keys) (*keys, error) {
	rows, ended, err := newestKeys(ctx, s.accounts.rows.store)
	if err != nil {
		return nil, err
	}
	all := &keys{byFirst: make(map[hash]*revision, len(rows)), bySecret: make(map[hash]allowed, len(rows))}
	for partition, row := range rows {
		first := hash([]byte(partition))
		if known := before.byFirst[first]; known != nil && (known.number > row.number || known.number == row.number && known.Unreadable == "") {
			all.add(known.endedAt(ended[partition]))
			continue
		}
		k := s.decode(first, row).endedAt(ended[partition])
		if k.orphaned() {
			s.accounts.leaves(k.Owner)
		}
		all.add(k)
	}
	for first, known := range before.byFirst { // not stored yet
		if all.byFirst[first] == nil {
			all.add(known)
		}
	}
	return all, nil
}

// decode decodes the newest row of a key.
func (s *keyStore) decode(first hash, row row) *revision {
	k, err := decodeKey(first, row.number, row.value)
	if err == nil && !k.Owner.IsZero() {
		if k.owner = s.accounts.known(k.Owner); k.owner == nil {
			err = fmt.Errorf("%w: none has the ID %s", ErrNoAccount, k.Owner)
		}
	}
	if err != nil {
		k = unreadableKey(first, row, err)
	}
	if err != nil && k.Live() {
		s.accounts.rows.disable(k.place(), "key "+k.ID.String(), row.number, err)
	} else {
		s.accounts.rows.enable(k.place())
	}
	return k
}

// endedAt returns the revision of a key that another revision has revoked; 0: none has.
func (k *revision) endedAt(revoked seconds) *revision {
	if revoked == 0 || !k.Revoked.IsZero() {
		return k
	}
	ended := *k
	ended.Revoked = revoked.time()
	return &ended
}

// orphaned reports whether the account that owned a key is deleted.
func (k *revision) orphaned() bool { return k.owner != nil && k.owner.load().deleted }

func (s *keys) clone() *keys { return &keys{maps.Clone(s.byFirst), maps.Clone(s.bySecret)} }

func (s *keys) remove(k *revision) {
	for _, secret := range k.secrets {
		delete(s.bySecret, secret.Hash)
	}
	delete(s.byFirst, k.first)
}

func (s *keys) add(k *revision) {
	if old := s.byFirst[k.first]; old != nil {
		s.remove(old)
	}
	s.byFirst[k.first] = k
	if !k.Live() || k.Unreadable != "" {
		return
	}
	for _, secret := range k.secrets {
		s.bySecret[secret.Hash] = allowed{k, secret.Until}
	}
}

// Of returns a Keyring restricted to one account: it lists, finds and changes only that
// account's keys, and the keys it creates belong to the account.
func (r *Keyring) Of(owner ID) *Keyring { return &Keyring{r.keyStore, &owner} }

// Check returns the key that has the secret text, which must not be modified. It returns
// false if there is none, the key was revoked or has expired, the secret was rotated away,
// or the account is disabled. It does not allocate. A caller must also check the key's
// password, with [Key.Accepts].
func (r *Keyring) Check(text string) (*Key, bool) {
	h, ok := hashOf(text)
	if !ok {
		return nil, false
	}
	a, ok := r.keys.Load().bySecret[h]
	if !ok {
		return nil, false
	}
	k := &a.key.Key
	if !r.holds(a.key) {
		return nil, false
	}
	if k.owner != nil && !k.owner.load().Enabled() {
		return nil, false
	}
	if a.until != 0 || !k.Expires.IsZero() {
		now := r.now()
		if k.Ended(now) || a.until != 0 && now.Unix() >= int64(a.until) {
			return nil, false
		}
	}
	return k, true
}

// List returns all keys, including those that have ended, oldest first.
func (r *Keyring) List(context.Context) ([]Key, error) {
	var all []Key
	for _, k := range r.keys.Load().byFirst {
		if r.holds(k) {
			all = append(all, r.described(k))
		}
	}
	slices.SortFunc(all, func(a, b Key) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), slices.Compare(a.ID[:], b.ID[:]))
	})
	return all, nil
}

// Find returns a key by its ID, or by its name if only one live key has it.
func (r *Keyring) Find(idOrName string) (Key, error) {
	k, err := r.find(idOrName)
	if err != nil {
		return Key{}, err
	}
	return r.described(k), nil
}

// described returns what callers see of a key.
func (s *keyStore) described(k *revision) Key {
	seen := k.Key
	seen.Unsaved = s.accounts.rows.isUnsaved(k.place())
	return seen
}

// holds reports whether k is one of r's keys, and its account is not deleted.
func (r *Keyring) holds(k *revision) bool {
	return (r.only == nil || k.Owner == *r.only) && !k.orphaned()
}

// find returns the key with the given ID or name, or the key itself.
func (r *Keyring) find(idOrName string) (*revision, error) {
	if idOrName == "" {
		return nil, fmt.Errorf("%w: expected the ID or the name of a key", ErrNoKey)
	}
	if k := r.withSecret(idOrName); k != nil {
		return k, nil
	}
	var id KeyID
	byID := id.UnmarshalText([]byte(idOrName)) == nil
	var named []*revision
	for _, k := range r.keys.Load().byFirst {
		switch {
		case !r.holds(k):
		case byID && k.ID == id:
			return k, nil
		case k.Name == idOrName && k.Live():
			named = append(named, k)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) == 0:
		if _, secret := hashOf(idOrName); secret {
			return nil, fmt.Errorf("%w: no key that is in use has this text, and no live key this name", ErrNoKey) // which may be a key's
		}
		return nil, fmt.Errorf("%w: no key has the ID and no live key has the name %q", ErrNoKey, idOrName)
	}
	ids := make([]string, len(named))
	for i, k := range named {
		ids[i] = k.ID.String()
	}
	slices.Sort(ids)
	return nil, fmt.Errorf("%w: %q; give one of the IDs %s", ErrAmbiguous, idOrName, strings.Join(ids, ", "))
}

// withSecret returns the key of which a text is the secret, nil if there is none. The key
// may have ended.
func (r *Keyring) withSecret(text string) *revision {
	h, ok := hashOf(text)
	if !ok {
		return nil
	}
	all := r.keys.Load()
	if k := all.bySecret[h].key; k != nil && r.holds(k) {
		return k
	}
	return nil
}

// put stores a revision of a key and makes it visible to Check. r.write is held.
func (r *Keyring) put(ctx context.Context, o order, k *revision, did string) error {
	k.describe()
	row := unsavedRow{number: k.number, record: k.record(), what: "key " + k.ID.String(), did: did, of: k.Owner}
	return r.accounts.rows.put(ctx, o, k.place(), row, func() {
		all := r.keys.Load().clone()
		all.add(k)
		r.keys.Store(all)
	})
}
