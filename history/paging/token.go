package paging

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash/crc32"
)

// ErrToken says that a text is no token, or none that a page came with.
var ErrToken = errors.New("no continuation token")

// Token says where a page goes on, and what must still be so for that to be right.
type Token struct {
	// Filter is the fingerprint of what was asked.
	Filter Fingerprint
	// Next is the place of the next page's first event.
	Next Place
	// BlockHash is that of the block in which it lies. As long as the chain has
	// it, everything before is as it was.
	BlockHash [32]byte
	// To is the last block of the range, as it was when the first page was
	// answered, so that blocks which arrive later do not come into it.
	To uint64
}

// Fingerprint tells filters apart.
type Fingerprint [12]byte

// tokenVersion begins every token, so that those of another form are refused.
const tokenVersion = 2

// tokenSum is of what a token holds. It tells a token that was changed on its way from
// one that was not, since most places in a token are as good as others. It is no
// secret: who makes up tokens harms nobody else.
func tokenSum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// The encoding of tokens: in URLs, JSON and shells it needs no quoting.
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

// ParseToken decodes a token, or returns ErrToken. Nothing but what String returns
// is one.
func ParseToken(text []byte) (t Token, err error) {
	b, err := tokenText.AppendDecode(nil, text)
	if err != nil || bytes.ContainsAny(text, "\r\n") { // which the decoder passes over
		return t, ErrToken
	}
	const fixed, sum = 1 + len(t.Filter) + len(t.BlockHash), 4
	if len(b) < fixed+sum || b[0] != tokenVersion {
		return t, ErrToken
	}
	b, told := b[:len(b)-sum], binary.BigEndian.Uint32(b[len(b)-sum:])
	if tokenSum(b) != told {
		return t, ErrToken
	}
	copy(t.Filter[:], b[1:])
	copy(t.BlockHash[:], b[1+len(t.Filter):])
	b = b[fixed:]
	var numbers [3]uint64
	for i := range numbers {
		value, n := binary.Uvarint(b)
		if n <= 0 || n > 1 && b[n-1] == 0 { // a longer form of the same number
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
