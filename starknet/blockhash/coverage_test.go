package blockhash_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/internal/vectors"
	"ashlar/starknet"
	"ashlar/starknet/blockhash"
)

// A change that Check lets pass is one that the header, as it is then, says is not covered.
func TestCoverageIsWhatCheckRefuses(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(vectors.Path(t, "starknet", "feeder"), "*block_*.json"))
	if err != nil {
		t.Fatal(err)
	}
	headers := []func(h *starknet.Header){ // as a source could send them
		func(*starknet.Header) {},
		func(h *starknet.Header) { h.Version = "" },
		func(h *starknet.Header) { h.Version = "99.0" },
		func(h *starknet.Header) { h.Version = "none" },
		func(h *starknet.Header) { h.Version = "0.14.2" },
		func(h *starknet.Header) { h.Commitments.StateDiff = starknet.Felt{} },
	}
	contents := []struct {
		change func(b *starknet.Block)
		in     blockhash.Coverage
	}{
		{func(*starknet.Block) {}, blockhash.CoversTransactions},
		{func(b *starknet.Block) { b.Transactions = b.Transactions[1:] }, blockhash.CoversTransactions},
		{func(b *starknet.Block) {
			r := &b.Transactions[0].Receipt
			r.Events = append(slices.Clone(r.Events), starknet.Event{From: starknet.FeltOf(7)})
		}, blockhash.CoversEvents},
		{func(b *starknet.Block) { b.Transactions[0].Receipt.ActualFee[31] ^= 1 }, blockhash.CoversReceipts},
		{func(b *starknet.Block) {
			r := &b.Transactions[0].Receipt
			r.Reverted, r.RevertReason = true, r.RevertReason+"!"
		}, blockhash.CoversReceipts},
	}
	networks := checkers()
	seen := make(map[blockhash.Coverage]int)
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".json")
		if strings.HasSuffix(name, "_pending") {
			continue
		}
		network, _, _ := strings.Cut(name, "_")
		id := map[string]string{
			"mainnet": "SN_MAIN", "goerli": "SN_GOERLI", "goerli2": "SN_GOERLI2", "integration": "SN_GOERLI",
			"sepolia": "SN_SEPOLIA", "sepolia-integration": "SN_INTEGRATION_SEPOLIA",
		}[network]
		for i, asSent := range headers {
			for j, c := range contents {
				block := read(t, path)
				if len(block.Transactions) == 0 || len(block.Transactions)+block.EventCount() > 40 {
					continue // hashing large ones takes long
				}
				asSent(&block.Header)
				c.change(block)
				covers := blockhash.CoverageOf(chainID(id), &block.Header)
				seen[covers]++
				verdict, err := networks[network].Check(block)
				switch {
				case err != nil: // refused
				case j == 0 && covers > blockhash.CoversNothing && verdict != blockhash.Confirmed:
					t.Errorf("%s with header %d: the verdict is %s, expected confirmed", name, i, verdict)
				case j > 0 && covers >= c.in:
					t.Errorf("%s with header %d: change %d passes, but level %d is covered, expected below %d", name, i, j, covers, c.in)
				}
			}
		}
	}
	if len(seen) != 4 {
		t.Errorf("levels seen: %v, expected all four", seen)
	}
}
