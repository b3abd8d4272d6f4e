package archive

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// A cache of many short codes is not larger than it is meant to be.
func TestShortCodesCountWithTheirEntries(t *testing.T) {
	history := newHistory(nil, form{})
	code := types.AddressToDelegation(common.Address{1})
	history.codes.Add(common.Hash{1}, code)
	if size, want := history.codes.Size(), uint64(cachedCodeEntryBytes+len(code)); size != want {
		t.Errorf("a code of %d bytes counts as %d, want %d with its entry", len(code), size, want)
	}
}
