package paging

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// ErrToken means that a text is not a token, or not one that was issued for the filter.
var ErrToken = errors.New("invalid continuation token")

// Token identifies the position at which a page continues, and the state of the chain that it assumes.
type Token struct {
	// Filter is the fingerprint of the filter.
	Filter Fingerprint
	// Next is the place of the first event of the next page.
	Next Place
	// BlockHash is the hash of the block of Next. While it is part of the chain, all earlier
	// pages are unchanged.
	BlockHash [32]byte
	// To is the last block of the range as resolved for the first page, so that blocks that
	// arrive later do not extend it.
	To uint64
}

// Fingerprint identifies a filter.
type Fingerprint [12]byte

// tokenVersion is the first byte of a token. Other versions are rejected.
const tokenVersion = 2

// tokenSum is the checksum in a token. It detects tokens damaged in transit, which would
// otherwise be valid places. It is not a secret: forging a token gains nothing.
func tokenSum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// tokenText encodes tokens so that they need no quoting in URLs, JSON and shells.
var tokenText = base64.RawURLEncoding.Strict()

// String encodes the token:
//
//	version byte | fingerprint (12 bytes) | block hash (32 bytes)
//	uvarint block | uvarint position | uvarint blocks from there to the last
//	checksum of all before (CRC-32C, 4 bytes)
func (t *Token) String() string {
	b := make([]byte, 0, 64)
	b = append(b, tokenVersion)
	b = append(b, t.Filter[:]...)
	b = append(b, t.BlockHash[:]...)
	b = binary.AppendUvarint(b, t.Next.Block)
	b = binary.AppendUvarint(b, t.Next.Position)
	b = binary.AppendUvarint(b, t.To-t.Next.Block)
	b = binary.BigEndian.AppendUint32(b, tokenSum(b))
	return tokenText.EncodeToString(b)
}

// ParseToken is the reverse of String. It returns ErrToken for any text that String cannot
// have returned.
func ParseToken(text []byte) (t Token, err error) {
	b, err := tokenText.AppendDecode(nil, text)
	if err != nil || bytes.ContainsAny(text, "\r\n") { // which the decoder ignores
		return t, ErrToken
	}
	const fixed, sum = 1 + len(t.Filter) + len(t.BlockHash), 4
	if len(b) < fixed+sum || b[0] != tokenVersion {
		return t, ErrToken
	}
	b, checksum := b[:len(b)-sum], binary.BigEndian.Uint32(b[len(b)-sum:])
	if tokenSum(b) != checksum {
		return t, ErrToken
	}
	copy(t.Filter[:], b[1:])
	copy(t.BlockHash[:], b[1+len(t.Filter):])
	b = b[fixed:]
	var numbers [3]uint64
	for i := range numbers {
		value, n := binary.Uvarint(b)
		if n <= 0 || n > 1 && b[n-1] == 0 { // not the shortest encoding
			return t, ErrToken
		}
		numbers[i], b = value, b[n:]
	}
	t.Next = Place{Block: numbers[0], Position: numbers[1]}
	t.To = t.Next.Block + numbers[2]
	if len(b) > 0 || t.To < t.Next.Block {
		return t, ErrToken
	}
	return t, nil
}
