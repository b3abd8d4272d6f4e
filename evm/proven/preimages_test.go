package proven

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"ashlar/evm"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
)

func TestPreimages(t *testing.T) {
	for _, length := range []int{common.AddressLength, common.HashLength} {
		p := newPreimages(length)
		for _, prefix := range [][]byte{{}, {7}, {0, 0}, {15, 15, 15}, {0, 1, 2, 3}, {15, 14, 13, 12, 11}, {0, 0, 0, 0, 0}} {
			found, err := p.find(t.Context(), prefix)
			if err != nil || len(found) != length {
				t.Fatalf("prefix %x: %x, %v, want %d bytes", prefix, found, err, length)
			}
			key := evm.AppendNibbles(nil, crypto.Keccak256(found))
			if !bytes.HasPrefix(key, prefix) {
				t.Errorf("prefix %x: the key of %x is %x", prefix, found, key)
			}
		}
		tried := p.tried
		if _, err := p.find(t.Context(), []byte{15, 14, 13, 12}); err != nil || p.tried != tried {
			t.Errorf("a prefix of one that was found: %v, %d numbers were tried", err, p.tried-tried)
		}
	}
}

// A search ends with its request, and when all numbers have been tried.
func TestPreimagesEnd(t *testing.T) {
	p := newPreimages(common.HashLength)
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := p.find(left, []byte{1, 2, 3}); !errors.Is(err, context.Canceled) || p.tried != 0 {
		t.Errorf("a request that has ended: %v, %d numbers were tried", err, p.tried)
	}
	p.tried = mostTried
	if _, err := p.find(t.Context(), []byte{1, 2, 3}); !errors.Is(err, evm.ErrUnnamed) {
		t.Errorf("after all numbers: %v", err)
	}
}

func BenchmarkPreimages(b *testing.B) {
	p := newPreimages(common.HashLength)
	for b.Loop() {
		if _, _, err := p.search(0, 0); err != nil {
			b.Fatal(err)
		}
		if p.tried == mostTried {
			p.tried = 0
		}
	}
}
