package account

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"ashlar/kv"
)

// keyRevisions holds every state that a key has had; the greatest revision counts.
//
//	partition  SHA-256 of the key's 32 hexadecimal digits
//	sort       revision: 0 as created, and one more for each change
//	value      format   1 byte, 0x01, or 0x02 for a key with rules
//	           created  8 bytes, big-endian, Unix seconds
//	           revoked  8 bytes, big-endian, Unix seconds; 0 while the key is live
//	           name     UTF-8: the rest, or, in format 0x02, 1 byte of length and as many bytes
//	           rules    in format 0x02 only, the rest: Rules as JSON
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
	keyFormat      = 0x01
	keyFormatRules = 0x02
	keyFixedLen    = 1 + 8 + 8
)

// appendKey appends the value of a row of keyRevisions.
func appendKey(out []byte, k Key) ([]byte, error) {
	revoked := uint64(0)
	if !k.Live() {
		revoked = uint64(k.Revoked.Unix())
	}
	format := byte(keyFormat)
	if k.Rules != nil {
		format = keyFormatRules
	}
	out = append(out, format)
	out = binary.BigEndian.AppendUint64(out, uint64(k.Created.Unix()))
	out = binary.BigEndian.AppendUint64(out, revoked)
	if k.Rules == nil {
		return append(out, k.Name...), nil
	}
	rules, err := json.Marshal(k.Rules)
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	out = append(append(out, byte(len(k.Name))), k.Name...)
	return append(out, rules...), nil
}

// decodeKey is the reverse of appendKey, but for the ID, which is in the partition.
func decodeKey(value []byte) (Key, error) {
	if len(value) < keyFixedLen {
		return Key{}, fmt.Errorf("%d bytes, expected %d or more", len(value), keyFixedLen)
	}
	k := Key{Created: time.Unix(int64(binary.BigEndian.Uint64(value[1:])), 0).UTC()}
	if revoked := binary.BigEndian.Uint64(value[9:]); revoked != 0 {
		k.Revoked = time.Unix(int64(revoked), 0).UTC()
	}
	rest := value[keyFixedLen:]
	switch value[0] {
	case keyFormat:
		k.Name = string(rest)
	case keyFormatRules:
		if len(rest) < 1 || len(rest) < 1+int(rest[0]) {
			return Key{}, fmt.Errorf("%d bytes after the times, expected the name with its length", len(rest))
		}
		end := 1 + int(rest[0])
		k.Name = string(rest[1:end])
		var err error
		if k.Rules, err = decodeRules(rest[end:]); err != nil {
			return Key{}, err
		}
	default:
		return Key{}, fmt.Errorf("format %#x, expected %#x or %#x", value[0], keyFormat, keyFormatRules)
	}
	if err := checkName(k.Name); err != nil {
		return Key{}, errors.Join(errors.New("the stored name is not one"), err)
	}
	return k, nil
}

// decodeRules refuses what it does not know: a key must not do more than its rules
// say because an older program reads them.
func decodeRules(raw []byte) (*Rules, error) {
	rules := new(Rules)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(rules); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return rules, rules.check()
}
