package clone

import (
	"context"
	"encoding/binary"
	"maps"
	"testing"

	"ashlar/kv"
)

// scanned counts the partitions that are read again.
type scanned struct {
	kv.Store
	scans int
}

func (s *scanned) Scan(ctx context.Context, t *kv.Table, partition []byte, from, to uint64) kv.Cursor {
	s.scans++
	return s.Store.Scan(ctx, t, partition, from, to)
}

// A partition with many small rows, such as the versions of a slot that counts, is not held in
// memory: each row takes more than its value.
func TestManySmallRows(t *testing.T) {
	const rows = heldBytes / 50 // at 4 bytes, the values are a twelfth of heldBytes
	from := &scanned{Store: open(t)}
	b := from.NewBatch()
	for sort := range uint64(rows) {
		b.Put(versions, []byte("counter"), sort, binary.BigEndian.AppendUint32(nil, uint32(sort)))
	}
	b.SetPointer("head", []byte("1"))
	if err := from.Write(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	to := open(t)
	if copied, err := Run(t.Context(), from, to, Options{Tables: tables()}); err != nil || copied != rows {
		t.Fatalf("%d rows copied, %v, expected %d", copied, err, rows)
	}
	if from.scans != 1 {
		t.Errorf("read again %d times, expected once: %d rows of a partition were held", from.scans, rows)
	}
	if !maps.Equal(contents(t, from), contents(t, to)) {
		t.Error("the copy has other contents")
	}
}
