package blockhash

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// version is a version of Starknet: three or four numbers, such as 0.13.1 or 0.13.1.1. The zero
// value stands for blocks without a version.
type version [4]uint16

// parseVersion parses the version in a block's header.
func parseVersion(text string) (v version, err error) {
	if text == "" {
		return v, nil
	}
	parts := strings.Split(text, ".")
	if len(parts) < 3 || len(parts) > len(v) {
		return v, fmt.Errorf("version %q: expected three or four numbers separated by dots", text)
	}
	for i, part := range parts {
		number, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return v, fmt.Errorf("version %q: %q is not a number below 65536", text, part)
		}
		v[i] = uint16(number)
	}
	return v, nil
}

func (v version) before(w version) bool { return slices.Compare(v[:], w[:]) < 0 }

// The versions that changed the rules of hashes.
func versionInHeader() version   { return version{0, 9, 1} }  // headers have a version
func versionSignatures() version { return version{0, 11, 1} } // covers all signatures, not only those of Invoke
func versionPoseidon() version   { return version{0, 13, 2} } // Poseidon; covers receipts and state diff
func versionGasPrices() version  { return version{0, 13, 4} } // covers the price of L2 gas

// versionNewest is the newest version whose blocks were seen to follow the rules.
func versionNewest() version { return version{0, 14, 1} }
