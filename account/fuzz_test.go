package account

import (
	"bytes"
	"reflect"
	"testing"
	"time"

	"ashlar/internal/memory"
)

// FuzzKeyRow looks for rows that make the decoder panic, or that are read as a
// key for which it would read another one's row.
func FuzzKeyRow(f *testing.F) {
	created := Key{Name: "somebody", Created: time.Unix(1_700_000_000, 0).UTC()}
	revoked := created
	revoked.Revoked = time.Unix(1_800_000_000, 0).UTC()
	ruled := created
	ruled.Rules = new(Rules)
	for _, k := range []Key{created, revoked, ruled, {}} {
		row, err := appendKey(nil, k)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(row)
	}
	f.Add([]byte{keyFormatRules + 1, 0, 0})
	f.Add(append(make([]byte, keyFixedLen), 255))
	longest := append([]byte{keyFormatRules}, make([]byte, keyFixedLen-1)...)
	f.Add(append(longest, bytes.Repeat([]byte{255}, 300)...)) // of a name, by its length
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+128*len(row), func() { checkKeyRow(t, row) })
	})
}

func checkKeyRow(t *testing.T, row []byte) {
	k, err := decodeKey(row)
	if err != nil {
		return
	}
	again, err := appendKey(nil, k)
	if err != nil {
		t.Fatal(err)
	}
	if back, err := decodeKey(again); err != nil || !reflect.DeepEqual(back, k) {
		t.Fatalf("%x is read as %+v, which comes back as %+v, %v", row, k, back, err)
	}
}
