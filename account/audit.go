package account

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"ashlar/kv"
)

// auditDays holds who changed accounts, keys and invitations. The partition is the day, as
// the number of days since 1970 (4 bytes, big-endian), the sort key milliseconds of the day
// × 2²⁰ + 20 random bits, the record an auditRecord. An entry is written in the same batch
// as the revision that it is about.
var auditDays = &kv.Table{ID: 0x47, Name: "audit_days", Kind: kv.List, Transient: true}

// AuditKeep is the number of days for which the audit log is kept.
const AuditKeep = 365

// The numbers of bits of a sort key of auditDays: the random ones, and all.
const (
	auditRandom   = 20
	auditSortBits = 27 + auditRandom
)

// Actor is who makes a change.
type Actor struct {
	Account ID         // zero: nobody is signed in, or a command in the shell
	Address netip.Addr // of the client; invalid: none
	Via     string     // such as "dashboard"; empty: the shell
}

type actorKey struct{}

// WithActor returns a context for changes made by an actor.
func WithActor(ctx context.Context, by Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, by)
}

// actorOf returns the actor of a context. Changes without one are made in the shell.
func actorOf(ctx context.Context) Actor {
	by, _ := ctx.Value(actorKey{}).(Actor)
	return by
}

// auditRecord is the JSON of a row of auditDays.
type auditRecord struct {
	By       ID         `json:"by,omitzero"`
	Address  netip.Addr `json:"address,omitzero"`
	Via      string     `json:"via,omitempty"`
	Did      string     `json:"did"`  // such as "revoke"
	What     string     `json:"what"` // such as "key 0102030405060708"
	Of       ID         `json:"of,omitzero"`
	Revision uint64     `json:"revision"`
}

// AuditEntry is a change that was made.
type AuditEntry struct {
	At      time.Time
	By      Actor
	Did     string // such as "revoke"
	What    string // such as "key 0102030405060708"
	Account ID     // that was changed, or that owns the key; zero: none
	// Position is the entry's place in the log. It grows with time.
	Position uint64
}

// AuditQuery selects entries of the audit log.
type AuditQuery struct {
	Account ID     // only what it did or what concerns it; zero: everything
	Before  uint64 // only entries before this Position; 0: from the newest on
	Limit   int
}

// auditDay returns the partition of a day.
func auditDay(day int64) []byte { return binary.BigEndian.AppendUint32(nil, uint32(day)) }

const millisecondsOfDay = 24 * 60 * 60 * 1000

// audited is an entry of the audit log, to be written with a row. If that write is tried again, the
// entry has the same place: the first attempt may have been applied.
type audited struct {
	day    int64
	sort   uint64
	record auditRecord
}

// newAudited returns an entry with a place of its own.
func newAudited(at time.Time, r auditRecord) audited {
	var random [4]byte
	_, _ = rand.Read(random[:]) // documented never to fail
	ms := at.UnixMilli()
	sort := uint64(ms%millisecondsOfDay)<<auditRandom | uint64(binary.BigEndian.Uint32(random[:])>>(32-auditRandom))
	return audited{ms / millisecondsOfDay, sort, r}
}

// putAuditAt adds an entry to a batch in its place.
func putAuditAt(b kv.Batch, day []byte, sort uint64, r auditRecord) error {
	raw, err := json.Marshal(r)
	if err != nil {
		return err
	}
	b.Put(auditDays, day, sort, append([]byte{formRecord}, raw...))
	return nil
}

// Audit returns the newest entries that a query selects, newest first. Entries that cannot
// be read are logged and left out.
func (a *Accounts) Audit(ctx context.Context, q AuditQuery) (found []AuditEntry, err error) {
	last := a.now().UnixMilli() / millisecondsOfDay
	if q.Before != 0 {
		last = min(last, int64(q.Before>>auditSortBits))
	}
	for day := last; day > last-AuditKeep && day >= 0 && len(found) < q.Limit; day-- {
		entries, err := a.auditOf(ctx, day)
		if err != nil {
			return nil, err
		}
		for _, e := range slices.Backward(entries) {
			if len(found) < q.Limit && (q.Before == 0 || e.Position < q.Before) && (q.Account.IsZero() || e.By.Account == q.Account || e.Account == q.Account) {
				found = append(found, e)
			}
		}
	}
	return found, nil
}

// auditOf returns the entries of a day, oldest first.
func (a *Accounts) auditOf(ctx context.Context, day int64) (all []AuditEntry, err error) {
	rows := a.rows.store.Scan(ctx, auditDays, auditDay(day), 0, 1<<63)
	for rows.Next() {
		var r auditRecord
		if err := decodeRecord(rows.Value(), &r); err != nil {
			slog.Error("an entry of the audit log cannot be read", "day", day, "error", err)
			continue
		}
		at := time.UnixMilli(day*millisecondsOfDay + int64(rows.Sort()>>auditRandom)).UTC()
		all = append(all, AuditEntry{at, Actor{r.By, r.Address, r.Via}, r.Did, r.What, r.Of, uint64(day)<<auditSortBits | rows.Sort()})
	}
	if err := rows.Close(); err != nil {
		return nil, fmt.Errorf("account: read the audit log: %w", err)
	}
	return all, nil
}

// dropOldAudit drops the days of the audit log that are not kept any longer.
func (a *Accounts) dropOldAudit(ctx context.Context) error {
	oldest := a.now().UnixMilli()/millisecondsOfDay - AuditKeep
	var old [][]byte
	for r, err := range a.rows.store.Walk(ctx, auditDays, 0) {
		if err != nil {
			return fmt.Errorf("account: read %s: %w", auditDays.Name, err)
		}
		if len(r.Partition) == 4 && int64(binary.BigEndian.Uint32(r.Partition)) < oldest && (len(old) == 0 || string(old[len(old)-1]) != string(r.Partition)) {
			old = append(old, slices.Clone(r.Partition))
		}
	}
	for _, partition := range old {
		if err := a.rows.store.Drop(ctx, auditDays, partition); err != nil {
			return fmt.Errorf("account: drop a day of the audit log: %w", err)
		}
	}
	return nil
}
