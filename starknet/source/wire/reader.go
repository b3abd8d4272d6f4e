// Package wire reads the JSON encoding of Starknet blocks used by feeder gateways and nodes. It
// extends [strictjson.Reader] by felts and the types that contain them. Unknown members are
// skipped, since new versions of gateways and nodes add some.
package wire

import (
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"ashlar/starknet"
	"ashlar/strictjson"

	"github.com/ethereum/go-ethereum/common"
)

// Reader reads a sequence of JSON values. It is for use by one goroutine.
type Reader struct{ *strictjson.Reader }

// NewReader returns a reader of the values in an input. A value may have at most most bytes.
func NewReader(in io.Reader, most int64) *Reader {
	return &Reader{strictjson.NewReader(in, most)}
}

// Felt reads a felt.
func (r *Reader) Felt() (starknet.Felt, error) {
	text, err := r.TextOf("a felt")
	if err != nil {
		return starknet.Felt{}, err
	}
	felt, err := starknet.ParseFelt(text)
	if err != nil {
		return starknet.Felt{}, r.Fail(err)
	}
	return felt, nil
}

// Felts reads an array of felts.
func (r *Reader) Felts() ([]starknet.Felt, error) {
	var felts []starknet.Felt
	err := r.Array(func(int) error {
		felt, err := r.Felt()
		felts = append(felts, felt)
		return err
	})
	return felts, err
}

// HexUint64 reads a number encoded like a felt.
func (r *Reader) HexUint64() (uint64, error) {
	felt, err := r.Felt()
	if err != nil {
		return 0, err
	}
	if len(felt.Significant()) > 8 {
		return 0, r.Fail(fmt.Errorf("found %s, expected a number below 2^64", felt))
	}
	var number uint64
	for _, b := range felt.Significant() {
		number = number<<8 | uint64(b)
	}
	return number, nil
}

// Hash reads a hash of 256 bits encoded like a felt. It may exceed the range of a felt.
func (r *Reader) Hash() (hash common.Hash, err error) {
	text, err := r.TextOf("a hash")
	if err != nil {
		return hash, err
	}
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok || len(digits) == 0 || len(digits) > 2*len(hash) {
		return hash, r.Fail(fmt.Errorf("found %.80q, expected 0x and 1 to %d hexadecimal digits", text, 2*len(hash)))
	}
	padded := strings.Repeat("0", 2*len(hash)-len(digits)) + digits
	if _, err := hex.Decode(hash[:], []byte(padded)); err != nil {
		return hash, r.Fail(fmt.Errorf("found %q: %w", text, err))
	}
	return hash, nil
}
