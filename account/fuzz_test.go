package account

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"ashlar/internal/memory"
)

// FuzzKeyRow searches for rows that make the decoder panic, or that decode to a key whose
// encoding differs.
func FuzzKeyRow(f *testing.F) {
	at := time.Unix(1_700_000_000, 0).UTC()
	created := revision{Key: Key{Name: "somebody", Created: at}, secrets: []secretRecord{{Made: 1}}}
	rotated := created
	rotated.secrets = []secretRecord{{Hash: hash{1}, Made: 2}, {Made: 1, Until: 3}}
	rotated.Revoked, rotated.Rules, rotated.password = at, &Rules{PerDay: 1}, &hash{2}
	for _, k := range []revision{created, rotated} {
		f.Add(keyRow(f, &k))
	}
	f.Add([]byte{formRecord + 1, 0, 0})
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+128*len(row), func() { checkKeyRow(t, row) })
	})
}

func keyRow(t testing.TB, k *revision) []byte {
	t.Helper()
	raw, err := json.Marshal(k.record())
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte{formRecord}, raw...)
}

func checkKeyRow(t *testing.T, row []byte) {
	k, err := decodeKey(hash{}, 0, row)
	if err != nil {
		return
	}
	again := keyRow(t, k)
	if back, err := decodeKey(hash{}, 0, again); err != nil || !reflect.DeepEqual(back, k) {
		t.Fatalf("%x is read as %+v, which is encoded as %+v, %v", row, k, back, err)
	}
}

// FuzzAccountRow does the same for rows of accounts.
func FuzzAccountRow(f *testing.F) {
	f.Add([]byte("\x01{\"email\":\"a@example.org\",\"role\":\"user\",\"created\":1}"))
	f.Add([]byte("\x01{\"email\":\"a@example.org\",\"role\":\"operator\",\"created\":1,\"password\":\"$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"epoch\":3}"))
	f.Add([]byte("\x01{\"role\":\"user\",\"created\":1,\"team\":{\"name\":\"a\",\"members\":[{\"id\":\"0102030405060708\",\"account\":\"0807060504030201\",\"role\":\"owner\",\"since\":1}],\"ended\":[\"0102030405060709\"]}}"))
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+128*len(row), func() {
			p, err := decodeAccount(ID{1}, 0, row)
			if err != nil {
				return
			}
			raw, err := json.Marshal(p.record())
			if err != nil {
				t.Fatal(err)
			}
			if back, err := decodeAccount(ID{1}, 0, append([]byte{formRecord}, raw...)); err != nil || !reflect.DeepEqual(back, p) {
				t.Fatalf("%q is read as %+v, which is encoded as %+v, %v", row, p, back, err)
			}
		})
	})
}
