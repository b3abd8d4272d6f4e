package parameter

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/holiman/uint256"
)

// Why a value is invalid.
var (
	ErrPrefix = errors.New("hex string without 0x prefix")
	ErrSyntax = errors.New("invalid hex string")

	errNonString   = errors.New("non-string value, want a hex string")
	errNonBool     = errors.New("non-boolean value, want true or false")
	errEmpty       = errors.New("empty hex string")
	errOdd         = errors.New("hex string of odd length")
	errNoDigits    = errors.New(`hex string "0x"`)
	errLeadingZero = errors.New("hex number with leading zero digits")
	errOver64      = errors.New("hex number > 64 bits")
	errOver256     = errors.New("hex number > 256 bits")
)

// ParseAddress decodes 20 bytes of hex, in either case; it ignores the checksum.
func ParseAddress(raw []byte) (address common.Address, err error) {
	err = parseFixed(raw, address[:], "common.Address")
	return address, err
}

// ParseAddressText is ParseAddress for the contents of a JSON string.
func ParseAddressText(text []byte) (address common.Address, err error) {
	err = parseFixedText(text, address[:], "common.Address")
	return address, err
}

// ParseHash decodes 32 bytes of hex.
func ParseHash(raw []byte) (hash common.Hash, err error) {
	err = parseFixed(raw, hash[:], "common.Hash")
	return hash, err
}

// parseFixed decodes hex of exactly the length of dst. kind is geth's name for it.
func parseFixed(raw, dst []byte, kind string) error {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return errNonString
	}
	return parseFixedText(text, dst, kind)
}

func parseFixedText(text, dst []byte, kind string) error {
	digits, err := hexDigits(text)
	if err != nil {
		return err
	}
	if len(digits) != 2*len(dst) {
		if len(digits)%2 != 0 {
			return errOdd
		}
		return fmt.Errorf("hex string has length %d, want %d for %s", len(digits), 2*len(dst), kind)
	}
	if _, err := hex.Decode(dst, digits); err != nil {
		return ErrSyntax
	}
	return nil
}

// ParseBytes decodes hex of any even length. As in geth, the empty string means no bytes.
func ParseBytes(raw []byte) ([]byte, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return nil, errNonString
	}
	if len(text) == 0 {
		return nil, nil
	}
	digits, err := hexDigits(text)
	if err != nil {
		return nil, err
	}
	if len(digits)%2 != 0 {
		return nil, errOdd
	}
	value := make([]byte, len(digits)/2)
	if _, err := hex.Decode(value, digits); err != nil {
		return nil, ErrSyntax
	}
	return value, nil
}

// ParseCount decodes a count or an index: as in geth, a hex quantity, a decimal string or a
// number.
func ParseCount(raw []byte) (uint64, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		text = raw
	}
	if HasPrefix(text) {
		if count, err := strconv.ParseUint(string(text[2:]), 16, 64); err == nil {
			return count, nil
		}
	} else if count, err := strconv.ParseUint(string(text), 10, 64); err == nil {
		return count, nil
	}
	return 0, fmt.Errorf("invalid hex or decimal integer %q", text)
}

// ParseUint64 decodes a quantity of at most 64 bits.
func ParseUint64(raw []byte) (uint64, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return 0, errNonString
	}
	return parseUint64Text(text)
}

func parseUint64Text(text []byte) (value uint64, err error) {
	digits, err := quantityDigitsOf(text)
	if err != nil {
		return 0, err
	}
	for _, c := range digits {
		if digitValue(c) < 0 {
			return 0, ErrSyntax
		}
	}
	if len(digits) > 16 {
		return 0, errOver64
	}
	for _, c := range digits {
		value = value<<4 | uint64(digitValue(c))
	}
	return value, nil
}

// ParseStorageKey decodes the key of a storage slot. As in geth, it may be shorter than 32
// bytes, have odd length and no prefix, and errors have no position.
func ParseStorageKey(raw []byte) (key common.Hash, err error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return key, errNonString
	}
	digits := text
	if HasPrefix(digits) {
		digits = digits[2:]
	}
	if (len(digits)+1)/2 > len(key) {
		return key, storageKeyError("storage key too long (want at most 32 bytes)", text)
	}
	var padded [2 * common.HashLength]byte
	for i := range padded {
		padded[i] = '0'
	}
	copy(padded[len(padded)-len(digits):], digits)
	if _, err := hex.Decode(key[:], padded[:]); err != nil {
		return key, storageKeyError("invalid hex in storage key", text)
	}
	return key, nil
}

func storageKeyError(why string, text []byte) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why + ": " + strconv.Quote(string(text))}
}

// ParseShortHash decodes the contents of a JSON string: a hash or topic of up to 64 digits,
// as written on Starknet networks.
func ParseShortHash(text []byte) (hash common.Hash, err error) {
	digits, err := hexDigits(text)
	switch {
	case err != nil:
		return hash, err
	case len(digits) == 0:
		return hash, errNoDigits
	case len(digits) > 2*len(hash):
		return hash, fmt.Errorf("hex string has %d digits, want at most %d", len(digits), 2*len(hash))
	}
	for i, c := range digits {
		value := digitValue(c)
		if value < 0 {
			return hash, ErrSyntax
		}
		at := len(digits) - 1 - i // counted from the end
		hash[len(hash)-1-at/2] |= byte(value) << (4 * (at % 2))
	}
	return hash, nil
}

// HasPrefix reports whether a text begins with 0x or 0X.
func HasPrefix(text []byte) bool {
	return len(text) >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')
}

// hexDigits returns the digits after the prefix.
func hexDigits(text []byte) ([]byte, error) {
	switch {
	case len(text) == 0:
		return nil, errEmpty
	case !HasPrefix(text):
		return nil, ErrPrefix
	}
	return text[2:], nil
}

// quantityDigits returns the digits of a quantity: at least one, without leading zeros.
func quantityDigits(raw []byte) ([]byte, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return nil, errNonString
	}
	return quantityDigitsOf(text)
}

func quantityDigitsOf(text []byte) ([]byte, error) {
	switch {
	case len(text) == 0:
		return nil, errEmpty
	case !HasPrefix(text):
		return nil, ErrPrefix
	case len(text) == 2:
		return nil, errNoDigits
	case len(text) > 3 && text[2] == '0':
		return nil, errLeadingZero
	}
	return text[2:], nil
}

// digitValue returns the value of a hexadecimal digit in either case, or -1.
func digitValue(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// ParseUint256 decodes a quantity of at most 256 bits.
func ParseUint256(raw []byte) (*uint256.Int, error) {
	digits, err := quantityDigits(raw)
	if err != nil {
		return nil, err
	}
	if len(digits) > 64 {
		return nil, errOver256
	}
	value := new(uint256.Int)
	for _, c := range digits {
		d := digitValue(c)
		if d < 0 {
			return nil, ErrSyntax
		}
		value.Lsh(value, 4)
		value[0] |= uint64(d)
	}
	return value, nil
}
