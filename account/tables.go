package account

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ashlar/kv"
)

// keyRevisions holds every state that a key has had; the greatest revision counts.
//
//	partition  SHA-256 of the key's 32 hexadecimal digits
//	sort       revision: 0 as created, 1 as revoked
//	value      format   1 byte, 0x01
//	           created  8 bytes, big-endian, Unix seconds
//	           revoked  8 bytes, big-endian, Unix seconds; 0 while the key is live
//	           name     the rest, UTF-8
var keyRevisions = &kv.Table{ID: 0x40, Name: "key_revisions", Kind: kv.Versions}

// format is the version of docs/format.md that this package reads and writes. The
// pointer of that name holds it.
const (
	format        = "ashlar-accounts-1"
	pointerFormat = "format"
)

// Tables lists the tables of accounts, for maintenance.
func Tables() []*kv.Table { return []*kv.Table{keyRevisions} }

const (
	keyFormat   = 0x01
	keyFixedLen = 1 + 8 + 8
)

// The revisions of a key.
const (
	revisionCreated = 0
	revisionRevoked = 1
)

// appendKey appends the value of a row of keyRevisions.
func appendKey(out []byte, k Key) []byte {
	revoked := uint64(0)
	if !k.Live() {
		revoked = uint64(k.Revoked.Unix())
	}
	out = append(out, keyFormat)
	out = binary.BigEndian.AppendUint64(out, uint64(k.Created.Unix()))
	out = binary.BigEndian.AppendUint64(out, revoked)
	return append(out, k.Name...)
}

// decodeKey is the reverse of appendKey, but for the ID, which is in the partition.
func decodeKey(value []byte) (Key, error) {
	if len(value) < keyFixedLen {
		return Key{}, fmt.Errorf("%d bytes, expected %d or more", len(value), keyFixedLen)
	}
	if value[0] != keyFormat {
		return Key{}, fmt.Errorf("format %#x, expected %#x", value[0], keyFormat)
	}
	name := string(value[keyFixedLen:])
	if err := checkName(name); err != nil {
		return Key{}, errors.Join(errors.New("the stored name is not one"), err)
	}
	k := Key{Name: name, Created: time.Unix(int64(binary.BigEndian.Uint64(value[1:])), 0).UTC()}
	if revoked := binary.BigEndian.Uint64(value[9:]); revoked != 0 {
		k.Revoked = time.Unix(int64(revoked), 0).UTC()
	}
	return k, nil
}
