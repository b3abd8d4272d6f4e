package api

import (
	"encoding/binary"
	"math/big"
	"math/bits"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

const hexAlphabet = "0123456789abcdef"

// appendHex appends bytes as a JSON string of hex; "0x" for no bytes.
func appendHex(out, value []byte) []byte {
	n := len(out)
	out = grow(out, 2*len(value)+4)
	dst := out[n:]
	dst[0], dst[1], dst[2], dst[len(dst)-1] = '"', '0', 'x', '"'
	putDigits(dst[3:], value)
	return out
}

// appendHash appends a hash as a JSON string of hex.
func appendHash(out []byte, hash common.Hash) []byte { return appendHex(out, hash[:]) }

// appendDigits appends two hex digits a byte.
func appendDigits(out, value []byte) []byte {
	n := len(out)
	out = grow(out, 2*len(value))
	putDigits(out[n:], value)
	return out
}

// putDigits writes two hex digits per byte to dst, which must be long enough.
func putDigits(dst, value []byte) {
	for len(value) >= 8 && len(dst) >= 16 {
		binary.LittleEndian.PutUint64(dst, eightDigits(binary.LittleEndian.Uint32(value)))
		binary.LittleEndian.PutUint64(dst[8:], eightDigits(binary.LittleEndian.Uint32(value[4:])))
		value, dst = value[8:], dst[16:]
	}
	if len(value) >= 4 && len(dst) >= 8 {
		binary.LittleEndian.PutUint64(dst, eightDigits(binary.LittleEndian.Uint32(value)))
		value, dst = value[4:], dst[8:]
	}
	for i, b := range value {
		dst[2*i], dst[2*i+1] = hexAlphabet[b>>4], hexAlphabet[b&15]
	}
}

// eightDigits returns the hex digits of four bytes, all in little-endian order. Answers
// consist mostly of hex, so this avoids a look-up per digit.
func eightDigits(value uint32) uint64 {
	const everyByte = 0x0101010101010101
	// Spread the bytes over lanes of 16 bits, and each over its two digits.
	x := uint64(value)
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = x>>4&0x000f000f000f000f | x<<8&0x0f000f000f000f00
	letters := (x + 6*everyByte) >> 4 & everyByte // 1 if the digit is a letter
	return x + '0'*everyByte + letters*('a'-'9'-1)
}

// grow makes out n bytes longer; the new bytes are undefined.
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

// appendQuantityBytes appends a big-endian number, which may have leading zeros.
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

// appendBig appends a non-negative number.
func appendBig(out []byte, value *big.Int) []byte {
	if value.IsUint64() {
		return appendQuantity(out, value.Uint64())
	}
	return appendQuantityBytes(out, value.Bytes())
}

// appendNull appends the answer for an object that does not exist.
func appendNull(out []byte) []byte { return append(out, "null"...) }
