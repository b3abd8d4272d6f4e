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

// Each table holds every state that something has had, under a sort key that is 0 as it
// was created and one more for each change; the greatest counts. A value is one byte, its
// form, and a record as JSON.
var (
	// keyRevisions has the SHA-256 of the first text of a key as partition, and a
	// keyRecord.
	keyRevisions = &kv.Table{ID: 0x40, Name: "key_revisions", Kind: kv.Versions}
	// accountRevisions has the ID of an account as partition, and an accountRecord.
	accountRevisions = &kv.Table{ID: 0x41, Name: "account_revisions", Kind: kv.Versions}
	// invitationRevisions has the SHA-256 of an invitation's token as partition, and an
	// invitationRecord.
	invitationRevisions = &kv.Table{ID: 0x42, Name: "invitation_revisions", Kind: kv.Versions}
)

// format is the version of docs/format.md that this package reads and writes. The
// pointer of that name holds it.
const (
	format        = "ashlar-accounts-1"
	pointerFormat = "format"
)

// formRecord is the first byte of every value: a record as JSON follows.
const formRecord = 0x01

// Tables lists the tables of accounts, for maintenance.
func Tables() []*kv.Table { return []*kv.Table{keyRevisions, accountRevisions, invitationRevisions} }

// Accept looks at a store without changing it, and returns ErrFormat where that
// holds something else than is read here.
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

// claim makes a store one of accounts, unless it is.
func claim(ctx context.Context, store kv.Store) error {
	if err := Accept(ctx, store); err != nil {
		return err
	}
	err := store.CompareAndSet(ctx, pointerFormat, nil, []byte(format))
	if err != nil && !errors.Is(err, kv.ErrConflict) { // it is there
		return fmt.Errorf("account: set the format: %w", err)
	}
	return nil
}

// row is the newest row of a partition.
type row struct {
	number uint64
	value  []byte
}

// newest reads the newest row of each partition of a table, whose partitions are of one
// length.
func newest(ctx context.Context, store kv.Store, t *kv.Table, partitionLen int) (map[string]row, error) {
	all := make(map[string]row)
	for r, err := range store.Walk(ctx, t) {
		if err != nil {
			return nil, fmt.Errorf("account: read %s: %w", t.Name, err)
		}
		if len(r.Partition) != partitionLen {
			return nil, fmt.Errorf("account: table %s: a partition of %d bytes, expected %d", t.Name, len(r.Partition), partitionLen)
		}
		if found, ok := all[string(r.Partition)]; !ok || found.number <= r.Sort {
			all[string(r.Partition)] = row{r.Sort, bytes.Clone(r.Value)}
		}
	}
	return all, nil
}

// write makes a row durable.
func write(ctx context.Context, store kv.Store, t *kv.Table, partition []byte, number uint64, record any) error {
	raw, err := json.Marshal(record)
	if err != nil {
		return err
	}
	b := store.NewBatch()
	b.Put(t, partition, number, append([]byte{formRecord}, raw...))
	if err := store.Write(ctx, b); err != nil {
		return err
	}
	return store.Sync(ctx)
}

// decodeRecord reads a value with a record. It refuses what it does not know: a key must
// not do more than its rules say because an older program reads them.
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
		return errors.New("something follows the record")
	}
	return nil
}

// seconds is a time as it is stored; 0 where there is none.
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

// wholeSeconds is a time as it is stored.
func wholeSeconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
