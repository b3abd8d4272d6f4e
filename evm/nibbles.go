package evm

import "github.com/ethereum/go-ethereum/common"

// KeyNibbles is the number of nibbles in a key of a trie. Paths in tries hold
// one nibble a byte.
const KeyNibbles = 2 * common.HashLength

// AppendNibbles appends the nibbles of key to path.
func AppendNibbles(path, key []byte) []byte {
	for _, b := range key {
		path = append(path, b>>4, b&0x0f)
	}
	return path
}

// AppendHexPrefix appends the nibbles of a hex-prefix encoded part of a key to
// path, and reports whether the part is a leaf's. It returns false for ok when
// encoded is empty, which no encoding is.
func AppendHexPrefix(path, encoded []byte) (longer []byte, leaf, ok bool) {
	if len(encoded) == 0 {
		return path, false, false
	}
	if encoded[0]&0x10 != 0 {
		path = append(path, encoded[0]&0x0f)
	}
	return AppendNibbles(path, encoded[1:]), encoded[0]&0x20 != 0, true
}

// NibblesKey joins the first [KeyNibbles] nibbles to a key.
func NibblesKey(nibbles []byte) (key common.Hash) {
	for i := range key {
		key[i] = nibbles[2*i]<<4 | nibbles[2*i+1]
	}
	return key
}
