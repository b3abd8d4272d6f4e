package clone

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math/bits"

	"ashlar/kv"
)

// sum is a checksum of rows in any order: the sum of the first 16 bytes of their hashes,
// modulo 2^128.
type sum struct{ high, low uint64 }

// add adds a row.
func (s *sum) add(t *kv.Table, partition []byte, sort uint64, value []byte) {
	var space [512]byte
	row := append(space[:0], t.ID)
	row = binary.BigEndian.AppendUint64(row, sort)
	row = binary.BigEndian.AppendUint16(row, uint16(len(partition)))
	row = append(append(row, partition...), value...)
	hash := sha256.Sum256(row)
	var carry uint64
	s.low, carry = bits.Add64(s.low, binary.BigEndian.Uint64(hash[8:]), 0)
	s.high, _ = bits.Add64(s.high, binary.BigEndian.Uint64(hash[:]), carry)
}

func (s sum) String() string { return fmt.Sprintf("%016x%016x", s.high, s.low) }

// MarshalText implements encoding.TextMarshaler.
func (s sum) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *sum) UnmarshalText(text []byte) error {
	var raw [16]byte
	if n, err := hex.Decode(raw[:], text); err != nil || n != len(raw) {
		return fmt.Errorf("checksum %q (want 32 hexadecimal digits)", text)
	}
	s.high, s.low = binary.BigEndian.Uint64(raw[:]), binary.BigEndian.Uint64(raw[8:])
	return nil
}
