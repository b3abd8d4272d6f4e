package account

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"ashlar/kv"
)

// Each table holds every revision of its records. The sort key is the revision, starting
// at 0; the greatest is current. A value is one byte, its form, followed by a record in
// JSON. Rows are dropped only when an account is deleted, see delete.go, and when an invitation
// has long expired.
var (
	// keyRevisions: the partition is the SHA-256 of the key's first secret, the record a
	// keyRecord.
	keyRevisions = &kv.Table{ID: 0x40, Name: "key_revisions", Kind: kv.Versions, Transient: true}
	// accountRevisions: the partition is the account's ID, the record an accountRecord.
	accountRevisions = &kv.Table{ID: 0x41, Name: "account_revisions", Kind: kv.Versions, Transient: true}
	// invitationRevisions: the partition is the SHA-256 of the invitation's token, the
	// record an invitationRecord.
	invitationRevisions = &kv.Table{ID: 0x42, Name: "invitation_revisions", Kind: kv.Versions, Transient: true}
)

// format is the version of docs/format.md that this package reads and writes. It is stored
// as the value of pointerFormat.
const (
	format        = "ashlar-accounts-1"
	pointerFormat = "format"
)

// formRecord is the first byte of every value; a record in JSON follows.
const formRecord = 0x01

// Tables lists this package's tables, for maintenance.
func Tables() []*kv.Table {
	return []*kv.Table{keyRevisions, accountRevisions, invitationRevisions, mailTokens, auditDays}
}

// Accept returns ErrFormat if the store holds something other than this version's accounts.
// It does not change the store; an empty one is accepted.
func Accept(ctx context.Context, store kv.Reader) error {
	found, err := store.Pointer(ctx, pointerFormat)
	if errors.Is(err, kv.ErrNotFound) {
		return nil
	}
	if err == nil && string(found) != format {
		err = fmt.Errorf("%w: the store has %q, this version reads %q", ErrFormat, found, format)
	}
	return err
}

// claim writes the format into an empty store, and checks that of any other.
func claim(ctx context.Context, store kv.Store) error {
	if err := Accept(ctx, store); err != nil {
		return err
	}
	err := store.CompareAndSet(ctx, pointerFormat, nil, []byte(format))
	if err != nil && !errors.Is(err, kv.ErrConflict) { // a conflict: already set
		return fmt.Errorf("account: set the format: %w", err)
	}
	return nil
}

// row is the newest row of a partition.
type row struct {
	number uint64
	value  []byte
}

// newest reads the newest row of each partition of a table. All partitions must have
// partitionLen bytes.
func newest(ctx context.Context, store kv.Store, t *kv.Table, partitionLen int) (map[string]row, error) {
	return newestOf(ctx, store, t, partitionLen, func(kv.Row) {})
}

// newestOf is newest, and calls each with every row.
func newestOf(ctx context.Context, store kv.Store, t *kv.Table, partitionLen int, each func(kv.Row)) (map[string]row, error) {
	all := make(map[string]row)
	for r, err := range store.Walk(ctx, t, 0) {
		if err != nil {
			return nil, fmt.Errorf("account: read %s: %w", t.Name, err)
		}
		if len(r.Partition) != partitionLen {
			return nil, fmt.Errorf("account: table %s: a partition of %d bytes, expected %d", t.Name, len(r.Partition), partitionLen)
		}
		each(r)
		if found, ok := all[string(r.Partition)]; !ok || found.number <= r.Sort {
			all[string(r.Partition)] = row{r.Sort, bytes.Clone(r.Value)}
		}
	}
	return all, nil
}

// decodeRecord decodes a value into record. It rejects unknown fields: an older program must
// not ignore a restriction that a newer one wrote.
func decodeRecord(value []byte, record any) error {
	if len(value) == 0 || value[0] != formRecord {
		return fmt.Errorf("form % x, expected %#x", value[:min(len(value), 1)], formRecord)
	}
	d := json.NewDecoder(bytes.NewReader(value[1:]))
	d.DisallowUnknownFields()
	if err := d.Decode(record); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the record")
	}
	return nil
}

// seconds is a stored time: Unix seconds, 0 for the zero time.
type seconds int64

func toSeconds(t time.Time) seconds {
	if t.IsZero() {
		return 0
	}
	return seconds(t.Unix())
}

func (s seconds) time() time.Time {
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(int64(s), 0).UTC()
}

// wholeSeconds rounds a time to the precision in which it is stored.
func wholeSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
