package api

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/holiman/uint256"
)

// TestHex compares every length and every byte with the standard library.
func TestHex(t *testing.T) {
	value := make([]byte, 300)
	for i := range value {
		value[i] = byte(i * 7)
	}
	for n := range value {
		want := `before"0x` + hex.EncodeToString(value[:n]) + `"`
		for _, room := range []int{0, 1000} {
			out := append(make([]byte, 0, room+6), "before"...)
			if got := appendHex(out, value[:n]); string(got) != want {
				t.Fatalf("%d bytes: %s, want %s", n, got, want)
			}
		}
	}
	for b := range 256 {
		four := bytes.Repeat([]byte{byte(b)}, 4)
		if got := appendDigits(nil, four); string(got) != hex.EncodeToString(four) {
			t.Errorf("byte %#x: %s", b, got)
		}
	}
}

// TestQuantities writes the same numbers in every way, around every power of two.
func TestQuantities(t *testing.T) {
	for bit := range 256 {
		for _, around := range []int64{-1, 0, 1} {
			value := new(big.Int).Lsh(big.NewInt(1), uint(bit))
			value.Add(value, big.NewInt(around))
			want := `"` + hexutil.EncodeBig(value) + `"`
			small, _ := uint256.FromBig(value)
			for how, got := range map[string][]byte{
				"appendBig":           appendBig(nil, value),
				"appendUint256":       appendUint256(nil, small),
				"appendQuantityBytes": appendQuantityBytes(nil, append([]byte{0, 0}, value.Bytes()...)),
			} {
				if string(got) != want {
					t.Errorf("%s of %v: %s, want %s", how, value, got, want)
				}
			}
			if value.IsUint64() {
				if got := appendQuantity(nil, value.Uint64()); string(got) != want {
					t.Errorf("appendQuantity of %v: %s, want %s", value, got, want)
				}
			}
		}
	}
}

func TestFloats(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 1: "1", 0.5: "0.5", 0.00072868: "0.00072868", 0.000001: "0.000001", 0.0000009: "9e-7", 1.5e-10: "1.5e-10",
		1.0 / 3: "0.3333333333333333", math.SmallestNonzeroFloat64: "5e-324",
	} {
		if got := appendFloat(nil, value); string(got) != want {
			t.Errorf("%g: %s, want %s", value, got, want)
		}
	}
}
