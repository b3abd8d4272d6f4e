package account

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/netip"
	"time"

	"ashlar/kv"
)

// lastRevision is the number of the revision that deletes an account. No other can follow it.
const lastRevision = math.MaxUint64

// sweepTime is the time between two attempts to remove what belonged to deleted accounts.
const sweepTime = 30 * time.Second

// Belongings is a part of the service that stores things of accounts and keys.
type Belongings interface {
	// Forget durably removes what belongs to a deleted account and to its keys, one of which
	// stands for calls without a key (see [Keyring.Session]). It may be called again.
	Forget(ctx context.Context, id ID, keys []KeyID) error
}

// Attach has the parts of the service forget deleted accounts. It must be called before
// anything else, except by tests.
func (a *Accounts) Attach(parts ...Belongings) { a.attached = append(a.attached, parts...) }

// Delete deletes an account with everything that belongs to it, and returns what it was. The
// deletion is durable when Delete returns: the account's keys, sessions and tokens are
// rejected, also after a crash. [Accounts.Run] then removes their rows from the store; if
// Config.Retry is nil, Delete does so before it returns.
func (a *Accounts) Delete(ctx context.Context, idOrEmail string) (Account, error) {
	was, err := a.markDeleted(ctx, idOrEmail)
	if err != nil {
		return Account{}, err
	}
	if a.rows.again == nil { // nothing runs
		return was, a.Sweep(context.WithoutCancel(ctx))
	}
	return was, nil
}

// markDeleted stores the last revision of an account.
func (a *Accounts) markDeleted(ctx context.Context, idOrEmail string) (Account, error) {
	a.write.Lock()
	defer a.write.Unlock()
	before, err := a.find(idOrEmail)
	if err != nil {
		return Account{}, err
	}
	if err := a.leavesOwners(before.ID); err != nil {
		return Account{}, err
	}
	if before.Role == RoleOperator && before.Enabled() && !a.otherOperator(before.ID) {
		return Account{}, ErrLastOperator
	}
	if by := actorOf(ctx); by.Account == before.ID {
		by.Address = netip.Addr{} // nothing about the user stays in the audit log
		ctx = WithActor(ctx, by)
	}
	p := &person{Account: Account{ID: before.ID, deleted: true}, number: lastRevision, invitation: before.invitation}
	if err := a.put(ctx, onceDurable, p, "delete"); err != nil {
		return Account{}, fmt.Errorf("account: delete account %s: %w", p.ID, err)
	}
	a.leaves(p.ID)
	return before.Account, nil
}

// otherOperator reports whether an account other than id is an operator's and can be used.
func (a *Accounts) otherOperator(id ID) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for other, h := range a.people {
		if p := h.load(); other != id && p.Role == RoleOperator && p.Enabled() {
			return true
		}
	}
	return false
}

// leaves records that a deleted account may have left something in the store or in memory.
func (a *Accounts) leaves(id ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unswept[id] = struct{}{}
	select {
	case a.unsweptMore <- struct{}{}:
	default: // Run is awake already
	}
}

// Sweep removes what belonged to deleted accounts.
func (a *Accounts) Sweep(ctx context.Context) error {
	a.sweeping.Lock()
	defer a.sweeping.Unlock()
	for {
		id, ok := a.takeUnswept()
		if !ok {
			return nil
		}
		if err := a.sweep(ctx, id); err != nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.unswept[id] = struct{}{}
			return fmt.Errorf("account: remove what belonged to the deleted account %s: %w", id, err)
		}
	}
}

// takeUnswept returns an account that Sweep has to look after, if there is one.
func (a *Accounts) takeUnswept() (ID, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id := range a.unswept {
		delete(a.unswept, id)
		return id, true
	}
	return ID{}, false
}

// sweep removes what belonged to a deleted account. Each step needs what later ones remove, so
// it is durable before they begin. After an interruption all can be done again.
func (a *Accounts) sweep(ctx context.Context, id ID) error {
	if !a.known(id).load().deleted {
		return nil // its last revision cannot be read: perhaps a newer program wrote it
	}
	keys := append(a.keys.ofOwner(id), KeyID(id))
	for _, part := range a.attached {
		if err := part.Forget(ctx, id, keys); err != nil {
			return err
		}
	}
	if err := a.forgetMailed(ctx, id); err != nil {
		return err
	}
	if err := a.forgetAddresses(ctx, id); err != nil {
		return err
	}
	if err := a.keys.dropOf(ctx, id); err != nil {
		return err
	}
	b := a.rows.store.NewBatch()
	b.DeleteRange(accountRevisions, id[:], 0, lastRevision-1)
	a.rows.announce(b)
	return a.writeDurably(ctx, b)
}

func (a *Accounts) writeDurably(ctx context.Context, b kv.Batch) error {
	if err := a.rows.store.Write(ctx, b); err != nil {
		return err
	}
	return a.rows.store.Sync(ctx)
}

// forgetMailed drops the tokens that were sent to the user of a deleted account, and its
// invitations.
func (a *Accounts) forgetMailed(ctx context.Context, id ID) error {
	a.write.Lock()
	defer a.write.Unlock()
	for h, r := range a.mailTokens { // changed only under the write lock
		if r.Account == id {
			if err := a.dropMailToken(ctx, h); err != nil {
				return err
			}
		}
	}
	return a.forgetInvitations(ctx, a.invitationsOf(id))
}

// invitationsOf returns the invitations that go with a deleted account: those that it was created
// with, or joined a team with, and those to it if it was a team.
func (a *Accounts) invitationsOf(id ID) (all []hash) {
	created := a.known(id).load().invitation
	a.mu.RLock()
	defer a.mu.RUnlock()
	for h, i := range a.invitations {
		if i.Team == id || a.joined[h] == id || created != nil && h == *created {
			all = append(all, h)
		}
	}
	return all
}

// runSweeps removes what belonged to deleted accounts until ctx is done.
func (a *Accounts) runSweeps(ctx context.Context) error {
	tick := time.NewTicker(sweepTime)
	defer tick.Stop()
	for {
		if err := a.Sweep(ctx); err != nil && ctx.Err() == nil {
			slog.Error("a deleted account has left something in the store: trying again", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.unsweptMore:
		case <-tick.C:
		}
	}
}

// ofOwner returns the IDs of all keys of an account.
func (s *keyStore) ofOwner(owner ID) (ids []KeyID) {
	for _, k := range s.keys.Load().byFirst {
		if k.Owner == owner {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// dropOf drops all keys of a deleted account.
func (s *keyStore) dropOf(ctx context.Context, owner ID) error {
	s.write.Lock()
	defer s.write.Unlock()
	all := s.keys.Load().clone()
	store := s.accounts.rows.store
	for first, k := range all.byFirst {
		if k.Owner != owner {
			continue
		}
		if err := store.Drop(ctx, keyRevisions, first[:]); err != nil {
			return err
		}
		s.accounts.rows.forget(k.place())
		all.remove(k)
	}
	if err := store.Sync(ctx); err != nil {
		return err
	}
	s.keys.Store(all)
	return nil
}

// Known returns the IDs under which usage is counted: those of all keys, and of the accounts,
// which stand for calls without a key.
func (r *Keyring) Known() map[KeyID]bool {
	known := make(map[KeyID]bool)
	for _, k := range r.keys.Load().byFirst {
		known[k.ID] = true
	}
	r.accounts.mu.RLock()
	defer r.accounts.mu.RUnlock()
	for id, h := range r.accounts.people {
		if !h.load().deleted {
			known[KeyID(id)] = true
		}
	}
	return known
}

// auditBatch is how many entries of the audit log are replaced at once.
const auditBatch = 1000

// forgetAddresses removes the addresses of a deleted account's user from the audit log: those
// of changes that the account made, and of changes of it that nobody signed in made.
func (a *Accounts) forgetAddresses(ctx context.Context, id ID) error {
	b := a.rows.store.NewBatch()
	for row, err := range a.rows.store.Walk(ctx, auditDays, 0) {
		if err != nil {
			return fmt.Errorf("read %s: %w", auditDays.Name, err)
		}
		var r auditRecord
		if decodeRecord(row.Value, &r) != nil || !r.Address.IsValid() {
			continue
		}
		if r.By != id && (r.Of != id || !r.By.IsZero()) {
			continue
		}
		r.Address = netip.Addr{}
		b.Delete(auditDays, row.Partition, row.Sort)
		if err := putAuditAt(b, row.Partition, row.Sort^1, r); err != nil {
			return err
		}
		if b.Rows() >= 2*auditBatch {
			if err := a.rows.store.Write(ctx, b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return a.writeDurably(ctx, b)
}
