package blockhash

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// version is a version of Starknet: three or four numbers, like 0.13.1 or
// 0.13.1.1. The zero value is that of blocks of a time before it was told.
type version [4]uint16

// parseVersion reads a version as a block's header has it.
func parseVersion(text string) (v version, err error) {
	if text == "" {
		return v, nil
	}
	parts := strings.Split(text, ".")
	if len(parts) < 3 || len(parts) > len(v) {
		return v, fmt.Errorf("version %q: expected three or four numbers with dots between", text)
	}
	for i, part := range parts {
		number, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return v, fmt.Errorf("version %q: %q is no number below 65536", text, part)
		}
		v[i] = uint16(number)
	}
	return v, nil
}

func (v version) before(w version) bool { return slices.Compare(v[:], w[:]) < 0 }

// The versions at which something about hashes changed.
func versionTold() version       { return version{0, 9, 1} }  // blocks tell their versions
func versionSignatures() version { return version{0, 11, 1} } // all signatures count, not those of Invoke alone
func versionPoseidon() version   { return version{0, 13, 2} } // Poseidon; receipts and state differences count
func versionGasPrices() version  { return version{0, 13, 4} } // prices of L2 gas count

// versionNewest is the newest version of which blocks were seen to follow the rules.
func versionNewest() version { return version{0, 14, 1} }
