package api

import (
	"encoding/hex"
	"fmt"
	"strconv"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// parseAddress decodes 20 bytes of hex, in either case; it ignores the checksum.
func parseAddress(raw []byte) (address common.Address, err error) {
	err = parseFixed(raw, address[:], "common.Address")
	return address, err
}

// parseAddressText is parseAddress for the contents of a JSON string.
func parseAddressText(text []byte) (address common.Address, err error) {
	err = parseFixedText(text, address[:], "common.Address")
	return address, err
}

// parseHash decodes 32 bytes of hex.
func parseHash(raw []byte) (hash common.Hash, err error) {
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
		return errSyntax
	}
	return nil
}

// parseBytes decodes hex of any even length. As in geth, the empty string means no bytes.
func parseBytes(raw []byte) ([]byte, error) {
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
		return nil, errSyntax
	}
	return value, nil
}

// parseUint64 decodes a quantity of at most 64 bits.
func parseUint64(raw []byte) (uint64, error) {
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
			return 0, errSyntax
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

// parseStorageKey decodes the key of a storage slot. As in geth, it may be shorter than 32
// bytes, have odd length and no prefix, and errors have no position.
func parseStorageKey(raw []byte) (key common.Hash, err error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return key, errNonString
	}
	digits := text
	if hasPrefix(digits) {
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

func hasPrefix(text []byte) bool {
	return len(text) >= 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')
}

// hexDigits returns the digits after the prefix.
func hexDigits(text []byte) ([]byte, error) {
	switch {
	case len(text) == 0:
		return nil, errEmpty
	case !hasPrefix(text):
		return nil, errPrefix
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
	case !hasPrefix(text):
		return nil, errPrefix
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
