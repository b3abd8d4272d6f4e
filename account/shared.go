package account

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ashlar/kv"
	"ashlar/retry"
)

// Several processes may write to one store of accounts ([Config.Shared]). Each holds all
// accounts and keys in memory, so it must learn of the changes of the others:
//
//   - A change is written together with a new, random value of the pointer `changes`.
//     [Keyring.Refresh] reads the pointer, and all rows if it has changed. If the write fails, its
//     row may be there all the same, so the process that made it sets another value. In case it has
//     ended, Refresh also reads all rows once a minute.
//   - Numbers of revisions end with random bits, so that two processes that change the same
//     thing at once write two rows. The one with the greater number holds.
//   - A change of an account or a key begins with its newest row in the store. Otherwise a process
//     that has not called Refresh since, and only records that a user signed in, would undo the
//     removal of a passkey, and a new name would undo a limit. The pointer `changing` is locked
//     meanwhile, so that no other process begins with the same row.
//   - An account is created under the same lock, once all that others have changed is read. So is a key, once the keys
//     of its account are counted, and an expired key is made valid again in the same way.
//   - A key that has been revoked by any of its revisions stays revoked.
//   - An account is deleted by its greatest possible revision. Rows that another process writes
//     afterwards are removed when they are found, see [Accounts.Sweep].

// pointerChanges changes with every change of a shared store.
const pointerChanges = "changes"

// randomBits end the numbers of revisions in a shared store.
const randomBits = 20

// sharedNumber returns the number of a revision after one that had number current.
func sharedNumber(current uint64) uint64 {
	var random [8]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	return (current>>randomBits+1)<<randomBits | binary.BigEndian.Uint64(random[:])>>(64-randomBits)
}

// uncertain reports whether there may be rows that this process does not know of.
func (r *rows) uncertain() bool { return r.shared || r.announcements.any() }

// changes returns the value of the pointer, nil if nothing was ever changed.
func (r *rows) changes(ctx context.Context) ([]byte, error) {
	value, err := r.store.Pointer(ctx, pointerChanges)
	if errors.Is(err, kv.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("account: read changes: %w", err)
	}
	return value, nil
}

// certainChanges is changes after those of this process that may have been made.
func (r *rows) certainChanges(ctx context.Context) ([]byte, error) {
	if err := r.announceFailed(ctx); err != nil {
		return nil, err
	}
	return r.changes(ctx)
}

const (
	// readAgain is after how long Refresh reads all rows although none was announced: a process that
	// ended after its write had failed announces nothing, and a row may arrive after its announcement.
	readAgain = time.Minute
	// announceAgain is the time between attempts of Refresh to announce failed changes, each of which
	// may take restrictionTime.
	announceAgain = 5 * time.Second
)

// Refresh reads what other processes have changed in a shared store: accounts, invitations
// and keys. In any store it reads what changes have left that have failed, once the store takes
// writes again. It must not be called concurrently.
func (r *Keyring) Refresh(ctx context.Context) error {
	if err := r.readChanges(ctx); err != nil {
		return err
	}
	state := &r.refreshing
	if state.unannounced == nil || time.Since(state.attempted) >= announceAgain { // changes of others must not wait for it
		state.attempted, state.unannounced = time.Now(), r.accounts.rows.announceFailed(ctx)
	}
	if !r.accounts.rows.shared {
		return nil // no other process waits for it, and the store says itself that it takes no writes
	}
	return state.unannounced
}

// refreshing is what calls of Refresh remember.
type refreshing struct {
	read        time.Time     // when all rows were read last
	readAgain   time.Duration // the constant, or less in tests
	attempted   time.Time     // when failed changes were to be announced last
	unannounced error         // why they were not
}

// readChanges reads all rows if any was changed, or if they were not read for long.
func (r *Keyring) readChanges(ctx context.Context) error {
	now, err := r.accounts.rows.changes(ctx)
	if err != nil {
		return err
	}
	begun := time.Now()
	again := r.accounts.rows.shared && begun.Sub(r.refreshing.read) >= r.refreshing.readAgain
	if bytes.Equal(now, r.seen) && !again { // which only Refresh writes
		return nil
	}
	if err := r.accounts.refresh(ctx, now, again); err != nil {
		return err
	}
	r.write.Lock()
	defer r.write.Unlock()
	all, err := r.load(ctx, r.keys.Load())
	if err != nil {
		return err
	}
	r.keys.Store(all)
	r.seen = now
	r.refreshing.read = begun
	return nil
}

// refresh reads what other processes have changed up to a value of the pointer. again says to read
// even if that was seen.
func (a *Accounts) refresh(ctx context.Context, changes []byte, again bool) error {
	a.write.Lock()
	defer a.write.Unlock()
	if again {
		return a.readAll(ctx, changes)
	}
	return a.catchUpTo(ctx, changes)
}

// catchUp reads what other processes have changed. The write lock is held.
func (a *Accounts) catchUp(ctx context.Context) error {
	changes, err := a.rows.certainChanges(ctx)
	if err != nil {
		return err
	}
	return a.catchUpTo(ctx, changes)
}

// catchUpTo reads what other processes have changed up to a value of the pointer, which was read
// before. The write lock is held.
func (a *Accounts) catchUpTo(ctx context.Context, changes []byte) error {
	if bytes.Equal(changes, a.seen) {
		return nil
	}
	return a.readAll(ctx, changes)
}

// readAll reads all rows, up to a value of the pointer that was read before. The write lock is held.
func (a *Accounts) readAll(ctx context.Context, changes []byte) error {
	if err := a.readPeople(ctx); err != nil {
		return err
	}
	if err := a.readInvitations(ctx); err != nil {
		return err
	}
	if err := a.readMailTokens(ctx); err != nil {
		return err
	}
	a.seen = changes
	return nil
}

// learn reads what other processes of a shared store have changed, before a change that depends on
// more than the account that it changes. The change calls catchUpIfUncertain, which then reads little.
func (a *Accounts) learn(ctx context.Context) error {
	a.write.Lock()
	defer a.write.Unlock()
	return a.catchUpIfUncertain(ctx)
}

// catchUpIfUncertain is catchUp, if other processes use the store or a change has failed. The write lock is held.
func (a *Accounts) catchUpIfUncertain(ctx context.Context) error {
	if !a.rows.uncertain() {
		return nil
	}
	return a.catchUp(ctx)
}

// lockToCreate takes the write lock to create an account. No other process of a shared store
// creates one meanwhile, and what they have created is known, so that neither an e-mail address
// nor an invitation is used twice.
func (a *Accounts) lockToCreate(ctx context.Context) (unlock func(), err error) {
	a.write.Lock()
	if err := a.catchUpIfUncertain(ctx); err != nil { // before others have to wait
		a.write.Unlock()
		return nil, err
	}
	if !a.rows.shared {
		return a.write.Unlock, nil
	}
	others, err := a.rows.lock(ctx, onceDurable)
	if err != nil {
		a.write.Unlock()
		return nil, err
	}
	unlock = func() { others(); a.write.Unlock() }
	if err := a.catchUp(ctx); err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

// pointerChanging is locked while a process changes an account or a key of a shared store: its value is a
// random text then, else unlocked. A process that ends in the middle leaves it locked.
const pointerChanging = "changing"

var unlocked = []byte{0}

const (
	lockEvery = 10 * time.Millisecond // between two attempts to get the lock
	// abandoned is how long a process holds the lock at most. Another one takes it from then on.
	abandoned = 2 * time.Second
	// lockTime bounds how long a change waits for the lock; restrictionTime, how long a restriction
	// does, which then goes without it.
	lockTime        = 3 * abandoned
	restrictionTime = time.Second
)

// lock returns when no other process changes an account or a key of a shared store, and what ends that. The change
// that follows has an order.
func (r *rows) lock(ctx context.Context, o order) (unlock func(), err error) {
	if !r.shared {
		return func() {}, nil
	}
	// A client that disconnects does not leave the lock behind.
	ctx = context.WithoutCancel(ctx)
	most := lockTime
	if o == atOnce {
		most = restrictionTime
	}
	waiting, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	mine := []byte(rand.Text())
	var seen []byte
	since := time.Now()
	for {
		held, err := r.store.Pointer(waiting, pointerChanging)
		if errors.Is(err, kv.ErrNotFound) {
			held, err = nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("account: lock the accounts: %w", err)
		}
		if !bytes.Equal(held, seen) {
			seen, since = held, time.Now()
		}
		if held == nil || bytes.Equal(held, unlocked) || time.Since(since) >= abandoned {
			err := r.store.CompareAndSet(waiting, pointerChanging, held, mine)
			if err == nil {
				return func() { r.unlock(ctx, mine) }, nil
			}
			if !errors.Is(err, kv.ErrConflict) {
				return nil, fmt.Errorf("account: lock the accounts: %w", err)
			}
		}
		if err := retry.Sleep(waiting, lockEvery); err != nil {
			return nil, fmt.Errorf("account: lock the accounts, which another process changes: %w", err)
		}
	}
}

// unlock ends a lock. If it cannot, others wait until it is abandoned.
func (r *rows) unlock(ctx context.Context, mine []byte) {
	ctx, cancel := context.WithTimeout(ctx, abandoned)
	defer cancel()
	if err := r.store.CompareAndSet(ctx, pointerChanging, mine, unlocked); err != nil && !errors.Is(err, kv.ErrConflict) {
		slog.Warn("the accounts stay locked for a moment", "for", abandoned, "error", err)
	}
}

// latestTime bounds how long a change waits for the newest row of what it changes.
const latestTime = 2 * time.Second

// latest returns the current revision of an account, for a change in the given order. If the
// newest row of a shared store cannot be read, a restriction begins with the revision in memory.
// The write lock is held.
func (a *Accounts) latest(ctx context.Context, o order, idOrEmail string) (*person, error) {
	p, err := a.find(idOrEmail)
	if err != nil || !a.rows.shared {
		return p, err
	}
	// A client that disconnects does not make the change begin with an old revision.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), latestTime)
	defer cancel()
	value, number, err := a.rows.store.Newest(ctx, accountRevisions, p.ID[:], lastRevision, nil)
	switch {
	case err == nil:
		a.apply(p.ID, row{number, value})
	case o == onceDurable:
		return nil, fmt.Errorf("account: read account %s: %w", p.ID, err)
	}
	return a.find(p.ID.String())
}

// newest reads the newest row of a key of a shared store, for a change in the given order. It is zero if
// the store is not shared, or if it cannot be read for a restriction: that begins with the revision in memory.
func (r *Keyring) newest(ctx context.Context, o order, k *revision) (row, error) {
	rows, most := r.accounts.rows, latestTime
	if !rows.shared {
		return row{}, nil
	}
	if o == atOnce {
		most = restrictionTime
	}
	// A client that disconnects does not make the change begin with an old revision.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
	defer cancel()
	value, number, err := rows.store.Newest(ctx, keyRevisions, k.first[:], lastRevision, nil)
	switch {
	case err == nil:
		return row{number, value}, nil
	case o == onceDurable:
		return row{}, fmt.Errorf("account: read key %s: %w", k.ID, err)
	}
	return row{}, nil
}

// storedElsewhere returns the keys of an account in a shared store which other processes have created or changed since
// Refresh, and perhaps others, without revoked ones. The lock of changes is held, so no process creates one or makes one
// valid again meanwhile.
func (r *Keyring) storedElsewhere(ctx context.Context, owner ID) (all []*revision, err error) {
	rows := r.accounts.rows
	if !rows.shared {
		return nil, nil
	}
	changes, err := rows.certainChanges(ctx)
	if err != nil {
		return nil, err
	}
	r.write.Lock()
	known := bytes.Equal(changes, r.seen)
	r.write.Unlock()
	if known {
		return nil, nil
	}
	stored, ended, err := newestKeys(ctx, rows.store)
	for partition, row := range stored {
		k, err := decodeKey(hash([]byte(partition)), row.number, row.value)
		if err == nil && k.Owner == owner && ended[partition] == 0 { // Refresh reports those that cannot be read
			all = append(all, k)
		}
	}
	return all, err
}

// apply makes a row of a key visible to Check if it is newer than the revision in memory. The write lock is held.
func (r *Keyring) apply(newest row, first hash) {
	all := r.keys.Load()
	known := all.byFirst[first]
	if known == nil || newest.number <= known.number {
		return
	}
	all = all.clone()
	all.add(r.decode(first, newest).endedAt(toSeconds(known.Revoked)))
	r.keys.Store(all)
}

// revoked returns when a row of a key says that it was revoked, 0 if it does not.
func revoked(value []byte) seconds {
	var record struct{ Revoked seconds }
	if len(value) > 0 {
		_ = json.Unmarshal(value[1:], &record) // an unreadable row is treated as such elsewhere
	}
	return record.Revoked
}
