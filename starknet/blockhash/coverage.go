package blockhash

import "ashlar/starknet"

// Coverage is how much of a block its recomputed hash covers. A greater one includes the
// smaller ones.
type Coverage uint8

// The values of [Coverage], ascending.
const (
	CoversNothing      Coverage = iota // the hash cannot be recomputed, or perhaps not
	CoversTransactions                 // the header, and the hashes of the transactions
	CoversEvents
	CoversReceipts // also the outcome, fee and L1 messages of each transaction
)

// CoverageOf returns how much of a block is certain from its header alone, once
// [Checker.Check] has returned no error: for every block that covers something, Check
// returns Confirmed or an error.
func CoverageOf(chainID starknet.Felt, h *starknet.Header) Coverage {
	v, err := parseVersion(h.Version)
	switch {
	case err != nil:
		return CoversNothing
	case !v.before(versionPoseidon()):
		if h.Commitments.StateDiff.IsZero() || versionNewest().before(v) {
			return CoversNothing
		}
		return CoversReceipts
	case !v.before(versionInHeader()):
		return CoversEvents
	case chainID != felt(shortString(mainnetID)):
		return CoversNothing
	case h.Number < mainnetFirstOfVersion07:
		return CoversTransactions
	}
	return CoversEvents
}
