package api

import (
	"fmt"
	"runtime"
	"testing"
)

// Subscriptions to receipts count for at least the memory that their transactions take.
func TestReceiptFiltersCountWhatTheyTake(t *testing.T) {
	for _, hashes := range []int{1, 9, 15, 113, maxReceiptHashes} {
		all, counted, before := make([]receiptFilter, 500), 0, heap()
		for i := range all {
			filter, err := parseReceiptFilter([]byte(`{"transactionHashes":[` + words(i*hashes, hashes, 32) + `]}`))
			if err != nil {
				t.Fatal(err)
			}
			all[i] = filter
			counted += filter.bytes()
		}
		check(t, fmt.Sprintf("%d transactions", hashes), counted, heap()-before)
		runtime.KeepAlive(all)
	}
}
