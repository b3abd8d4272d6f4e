package account

import (
	"bytes"
	"testing"
	"time"

	"ashlar/internal/memory"
)

// FuzzKeyRow looks for rows that are taken for a key although another would be
// written for it.
func FuzzKeyRow(f *testing.F) {
	created := Key{Name: "somebody", Created: time.Unix(1_700_000_000, 0).UTC()}
	revoked := created
	revoked.Revoked = time.Unix(1_800_000_000, 0).UTC()
	for _, k := range []Key{created, revoked, {}} {
		f.Add(appendKey(nil, k))
	}
	f.Add([]byte{keyFormat + 1, 0, 0})
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+32*len(row), func() {
			if k, err := decodeKey(row); err == nil && !bytes.Equal(appendKey(nil, k), row) {
				t.Fatalf("%x is read as %+v, which is written as %x", row, k, appendKey(nil, k))
			}
		})
	})
}
