package parameter

import "errors"

var errEventAddress = errors.New("expected an address: 0x and 40 hexadecimal digits")

// ParseEventAddress reads an address of rollup_getEvents, with all its digits. Zeros come before it.
func ParseEventAddress(text []byte) (word [32]byte, err error) {
	address, err := ParseAddressText(text)
	if err != nil {
		return word, errEventAddress
	}
	copy(word[len(word)-len(address):], address[:])
	return word, nil
}

// ParseEventWord reads a hash or topic of up to 64 digits, as written on Starknet networks.
func ParseEventWord(text []byte) ([32]byte, error) {
	hash, err := ParseShortHash(text)
	return hash, err
}
