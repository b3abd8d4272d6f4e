package starknet

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// FeltBytes is the length of a [Felt].
const FeltBytes = 32

// Felt is an element of Starknet's field: a number below P = 2²⁵¹ + 17·2¹⁹² + 1, big-endian.
// Hashes, addresses, and the keys and data of events are felts.
type Felt [FeltBytes]byte

// prime is P, big-endian.
var prime = Felt{0: 0x08, 7: 0x11, 31: 0x01}

// FeltOf returns a number as a felt.
func FeltOf(number uint64) (f Felt) {
	binary.BigEndian.PutUint64(f[FeltBytes-8:], number)
	return f
}

// FeltOfText returns the felt whose big-endian bytes are a short text of at most 31 bytes.
// Chain IDs are encoded in this way.
func FeltOfText(text string) (f Felt) {
	copy(f[FeltBytes-min(len(text), FeltBytes-1):], text)
	return f
}

// ParseFelt parses a felt in JSON notation: 0x and 1 to 64 hexadecimal digits in either case,
// with optional leading zeros.
func ParseFelt[T string | []byte](text T) (f Felt, err error) {
	if len(text) < 2 || text[0] != '0' || text[1] != 'x' {
		return f, fmt.Errorf("felt %q: missing prefix 0x", shortened(text))
	}
	digits := len(text) - 2
	if digits == 0 || digits > 2*FeltBytes {
		return f, fmt.Errorf("felt %q: %d digits after 0x, expected 1 to %d", shortened(text), digits, 2*FeltBytes)
	}
	for i := range digits {
		value := digitValue(text[2+i])
		if value > 0xf {
			return f, fmt.Errorf("felt %q: character %d is %q, expected a hexadecimal digit", shortened(text), 3+i, text[2+i])
		}
		at := digits - 1 - i // position from the last digit
		f[FeltBytes-1-at/2] |= value << (4 * (at % 2))
	}
	if f.Cmp(prime) >= 0 {
		return Felt{}, fmt.Errorf("felt %q: not below the field's prime %s", shortened(text), prime)
	}
	return f, nil
}

// digitValue returns the value of a hexadecimal digit, or more than 15 for other characters.
func digitValue(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10
	}
	return 0xff
}

// shortened truncates a text for an error message to the maximum length of a felt.
func shortened[T string | []byte](text T) string {
	const most = 2 + 2*FeltBytes
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

// Cmp compares the felts as numbers. It returns -1, 0 or 1.
func (f Felt) Cmp(g Felt) int {
	for i := 0; i < FeltBytes; i += 8 {
		a, b := binary.BigEndian.Uint64(f[i:]), binary.BigEndian.Uint64(g[i:])
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
	}
	return 0
}

// IsZero reports whether the felt is 0.
func (f Felt) IsZero() bool { return f == Felt{} }

// Significant returns the felt's big-endian bytes without leading zeros, none for 0. They
// alias f.
func (f *Felt) Significant() []byte {
	for i, b := range f {
		if b != 0 {
			return f[i:]
		}
	}
	return nil
}

// AppendText appends the canonical form: 0x and lower-case digits without
// leading zeros; 0x0 for 0.
func (f Felt) AppendText(out []byte) []byte {
	const alphabet = "0123456789abcdef"
	out = append(out, '0', 'x')
	rest := f.Significant()
	if len(rest) == 0 {
		return append(out, '0')
	}
	if bits.LeadingZeros8(rest[0]) >= 4 {
		out = append(out, alphabet[rest[0]])
		rest = rest[1:]
	}
	for _, b := range rest {
		out = append(out, alphabet[b>>4], alphabet[b&15])
	}
	return out
}

// String returns the canonical form, see AppendText.
func (f Felt) String() string { return string(f.AppendText(nil)) }
