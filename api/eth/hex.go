package eth

import (
	"encoding/binary"
	"math/big"
	"math/bits"

	"github.com/holiman/uint256"
)

const hexAlphabet = "0123456789abcdef"

// hexPairs holds the two digits of every byte, side by side, so that a byte is one look-up.
const hexPairs = "" +
	"000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f" +
	"202122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f" +
	"404142434445464748494a4b4c4d4e4f505152535455565758595a5b5c5d5e5f" +
	"606162636465666768696a6b6c6d6e6f707172737475767778797a7b7c7d7e7f" +
	"808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f" +
	"a0a1a2a3a4a5a6a7a8a9aaabacadaeafb0b1b2b3b4b5b6b7b8b9babbbcbdbebf" +
	"c0c1c2c3c4c5c6c7c8c9cacbcccdcecfd0d1d2d3d4d5d6d7d8d9dadbdcdddedf" +
	"e0e1e2e3e4e5e6e7e8e9eaebecedeeeff0f1f2f3f4f5f6f7f8f9fafbfcfdfeff"

// appendHex appends bytes as a JSON string of hex, "0x" for none.
func appendHex(out, value []byte) []byte {
	out = append(out, '"', '0', 'x')
	out = appendDigits(out, value)
	return append(out, '"')
}

// appendDigits appends two hex digits a byte.
func appendDigits(out, value []byte) []byte {
	n := len(out)
	out = grow(out, 2*len(value))
	dst := out[n:]
	for _, b := range value {
		pair := hexPairs[2*int(b) : 2*int(b)+2]
		dst[0], dst[1] = pair[0], pair[1]
		dst = dst[2:]
	}
	return out
}

// grow makes out n bytes longer; what they hold is not defined.
func grow(out []byte, n int) []byte {
	if free := cap(out) - len(out); free < n {
		out = append(out[:cap(out)], make([]byte, n-free)...)
		return out
	}
	return out[:len(out)+n]
}

// appendQuantity appends a number as a JSON string of hex without leading zeros.
func appendQuantity(out []byte, value uint64) []byte {
	out = append(out, '"', '0', 'x')
	digits := (bits.Len64(value|1) + 3) / 4
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		out = append(out, hexAlphabet[value>>shift&15])
	}
	return append(out, '"')
}

// appendQuantityBytes appends a big-endian number, leading zeros allowed.
func appendQuantityBytes(out, value []byte) []byte {
	for len(value) > 0 && value[0] == 0 {
		value = value[1:]
	}
	if len(value) == 0 {
		return append(out, `"0x0"`...)
	}
	out = append(out, '"', '0', 'x')
	if value[0] < 16 {
		out = append(out, hexAlphabet[value[0]])
		value = value[1:]
	}
	out = appendDigits(out, value)
	return append(out, '"')
}

// appendUint256 appends a number of up to 256 bits.
func appendUint256(out []byte, value *uint256.Int) []byte {
	if value.IsUint64() {
		return appendQuantity(out, value.Uint64())
	}
	var buffer [32]byte
	for i, limb := range value {
		binary.BigEndian.PutUint64(buffer[24-8*i:], limb)
	}
	return appendQuantityBytes(out, buffer[:])
}

// appendBig appends a number that is not negative.
func appendBig(out []byte, value *big.Int) []byte {
	if value.IsUint64() {
		return appendQuantity(out, value.Uint64())
	}
	return appendQuantityBytes(out, value.Bytes())
}

// appendNull appends the answer for what was not found.
func appendNull(out []byte) []byte { return append(out, "null"...) }

// appendMember appends what comes before the value of a member that is not an object's first.
func appendMember(out []byte, name string) []byte {
	out = append(out, ',', '"')
	out = append(out, name...)
	return append(out, '"', ':')
}
