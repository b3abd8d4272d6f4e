package account

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"ashlar/kv"
)

var (
	// ErrNoKey is in the error of Revoke when nothing has the given ID or name.
	ErrNoKey = errors.New("no such key")
	// ErrAmbiguous is in the error of Revoke when several live keys have the given name.
	ErrAmbiguous = errors.New("more than one live key has this name")
	// ErrFormat says that a store was written by another version, or holds no keys.
	ErrFormat = errors.New("account: unknown format")
)

// Keyring is the API keys of a store. All of them are in memory too, where Check
// looks: what is created or revoked through a Keyring counts at once there, and
// in other processes once they open the store again. It may be used from many
// goroutines at once.
type Keyring struct {
	store kv.Store
	keys  atomic.Pointer[map[hash]*revision] // replaced, never changed, nor is what it holds
	write sync.Mutex                         // held by whoever replaces keys
}

// revision is a state of a key.
type revision struct {
	Key
	number uint64 // as the sort key of its row
}

// Accept looks at a store without changing it, and returns ErrFormat where that
// holds something else than Open reads.
func Accept(ctx context.Context, store kv.Reader) error {
	found, err := store.Pointer(ctx, pointerFormat)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err == nil && string(found) != format {
		err = fmt.Errorf("%w: it is %q, this version reads %q", ErrFormat, found, format)
	}
	return err
}

// Open reads the keys in store, which must stay open as long as the Keyring is used.
func Open(ctx context.Context, store kv.Store) (*Keyring, error) {
	if err := Accept(ctx, store); err != nil {
		return nil, err
	}
	err := store.CompareAndSet(ctx, pointerFormat, nil, []byte(format))
	if err != nil && !errors.Is(err, kv.ErrConflict) { // it is there
		return nil, fmt.Errorf("account: set the format: %w", err)
	}
	keys := make(map[hash]*revision)
	for row, err := range store.Walk(ctx, keyRevisions) {
		if err != nil {
			return nil, fmt.Errorf("account: read keys: %w", err)
		}
		if len(row.Partition) != len(hash{}) {
			return nil, fmt.Errorf("account: table %s: a partition of %d bytes, expected %d", keyRevisions.Name, len(row.Partition), len(hash{}))
		}
		h := hash(row.Partition)
		if newest := keys[h]; newest != nil && newest.number > row.Sort {
			continue
		}
		k, err := decodeKey(row.Value)
		if err != nil {
			return nil, fmt.Errorf("account: table %s: key %s, revision %d: %w", keyRevisions.Name, h.id(), row.Sort, err)
		}
		k.ID = h.id()
		keys[h] = &revision{k, row.Sort}
	}
	r := &Keyring{store: store}
	r.keys.Store(&keys)
	return r, nil
}

// Check returns what is known of a live key, which must not be changed, and false for
// what is none. It allocates nothing.
func (r *Keyring) Check(secret string) (*Key, bool) {
	h, ok := hashOf(secret)
	if !ok {
		return nil, false
	}
	k, ok := (*r.keys.Load())[h]
	if !ok || !k.Live() {
		return nil, false
	}
	return &k.Key, true
}

// Create makes a key and returns it, the only time that anyone sees it. When Create
// returns, the key is durable.
func (r *Keyring) Create(ctx context.Context, name string) (secret string, k Key, err error) {
	if err := checkName(name); err != nil {
		return "", Key{}, err
	}
	r.write.Lock()
	defer r.write.Unlock()
	secret = newSecret()
	h, _ := hashOf(secret)
	k = Key{ID: h.id(), Name: name, Created: now()}
	if err := r.put(ctx, h, revision{Key: k}); err != nil {
		return "", Key{}, fmt.Errorf("account: create a key: %w", err)
	}
	return secret, k, nil
}

// List returns all keys, revoked ones too, the oldest first.
func (r *Keyring) List(context.Context) ([]Key, error) {
	revisions := *r.keys.Load()
	all := make([]Key, 0, len(revisions))
	for _, k := range revisions {
		all = append(all, k.Key)
	}
	slices.SortFunc(all, func(a, b Key) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name), slices.Compare(a.ID[:], b.ID[:]))
	})
	return all, nil
}

// Revoke ends a key for good, named by its ID or, if only one live key has it, by
// its name. Of a key revoked before it returns the state, unchanged. When Revoke
// returns, the end is durable, and no Check that begins later accepts the key.
func (r *Keyring) Revoke(ctx context.Context, idOrName string) (Key, error) {
	r.write.Lock()
	defer r.write.Unlock()
	h, err := r.find(idOrName)
	if err != nil {
		return Key{}, err
	}
	k := *(*r.keys.Load())[h]
	if !k.Live() {
		return k.Key, nil
	}
	k.Revoked = now()
	k.number++
	if err := r.put(ctx, h, k); err != nil {
		return Key{}, fmt.Errorf("account: revoke key %s: %w", k.ID, err)
	}
	return k.Key, nil
}

// Restrict gives a live key new rules in place of those it has, named as for Revoke.
// When Restrict returns they are durable, and hold for every Check that begins later.
func (r *Keyring) Restrict(ctx context.Context, idOrName string, rules Rules) (Key, error) {
	if err := rules.check(); err != nil {
		return Key{}, err
	}
	r.write.Lock()
	defer r.write.Unlock()
	h, err := r.find(idOrName)
	if err != nil {
		return Key{}, err
	}
	k := *(*r.keys.Load())[h]
	if !k.Live() {
		return Key{}, fmt.Errorf("%w: key %s is revoked", ErrNoKey, k.ID)
	}
	k.Rules = nil
	if !rules.empty() {
		k.Rules = &rules
	}
	k.number++
	if err := r.put(ctx, h, k); err != nil {
		return Key{}, fmt.Errorf("account: restrict key %s: %w", k.ID, err)
	}
	return k.Key, nil
}

// find returns the hash of the key that idOrName means.
func (r *Keyring) find(idOrName string) (hash, error) {
	if idOrName == "" {
		return hash{}, fmt.Errorf("%w: expected the ID or the name of a key", ErrNoKey)
	}
	keys := *r.keys.Load()
	var id ID
	byID := id.UnmarshalText([]byte(idOrName)) == nil
	var live []hash
	for h, k := range keys {
		if byID && k.ID == id {
			return h, nil
		}
		if k.Name == idOrName && k.Live() {
			live = append(live, h)
		}
	}
	switch {
	case len(live) == 1:
		return live[0], nil
	case len(live) == 0:
		return hash{}, fmt.Errorf("%w: no key has the ID, and no live key the name %q", ErrNoKey, idOrName)
	}
	ids := make([]string, len(live))
	for i, h := range live {
		ids[i] = h.id().String()
	}
	slices.Sort(ids)
	return hash{}, fmt.Errorf("%w: %q; give one of the IDs %s", ErrAmbiguous, idOrName, strings.Join(ids, ", "))
}

// put makes a revision of a key durable and then known to Check. r.write is held.
func (r *Keyring) put(ctx context.Context, h hash, k revision) error {
	value, err := appendKey(nil, k.Key)
	if err != nil {
		return err
	}
	b := r.store.NewBatch()
	b.Put(keyRevisions, h[:], k.number, value)
	if err := r.store.Write(ctx, b); err != nil {
		return err
	}
	if err := r.store.Sync(ctx); err != nil {
		return err
	}
	keys := maps.Clone(*r.keys.Load())
	keys[h] = &k
	r.keys.Store(&keys)
	return nil
}

// now is the time as it is stored.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }
