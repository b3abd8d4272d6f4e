package evm_test

import (
	"bytes"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
)

func TestNibbles(t *testing.T) {
	key := common.HexToHash("0x0123456789abcdef00112233445566778899aabbccddeeff0f1e2d3c4b5a6978")
	nibbles := evm.AppendNibbles(nil, key[:])
	if len(nibbles) != evm.KeyNibbles || !bytes.Equal(nibbles[:4], []byte{0, 1, 2, 3}) || nibbles[63] != 8 {
		t.Errorf("the nibbles of %x are %x", key, nibbles)
	}
	if got := evm.NibblesKey(nibbles); got != key {
		t.Errorf("its nibbles join to %x, expected %x", got, key)
	}
}

func TestAppendHexPrefix(t *testing.T) {
	for _, c := range []struct {
		encoded  string
		nibbles  string
		leaf, ok bool
	}{
		{"", "f", false, false},
		{"\x00", "f", false, true},
		{"\x00\x12", "f\x01\x02", false, true},
		{"\x13\x45", "f\x03\x04\x05", false, true},
		{"\x20\x12", "f\x01\x02", true, true},
		{"\x3a", "f\x0a", true, true},
	} {
		nibbles, leaf, ok := evm.AppendHexPrefix([]byte("f"), []byte(c.encoded))
		if string(nibbles) != c.nibbles || leaf != c.leaf || ok != c.ok {
			t.Errorf("%x: %x, %t, %t; expected %x, %t, %t", c.encoded, nibbles, leaf, ok, c.nibbles, c.leaf, c.ok)
		}
	}
}
