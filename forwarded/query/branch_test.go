package query

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
)

// What the answer about a pending transaction costs, for which clients ask again and again: as many blocks as are searched, of 230
// transactions each.
func BenchmarkPendingTransaction(b *testing.B) {
	var blocks []*forwarded.Block
	for number := range uint64(upstream.Shallow) {
		var hashes []string
		for i := range 230 {
			hashes = append(hashes, fmt.Sprintf(`"0x%x"`, sha256.Sum256(fmt.Append(nil, number, i))))
		}
		blocks = append(blocks, &forwarded.Block{
			Ref: chain.Ref{Number: 1 + number, Hash: common.Hash{byte(1 + number)}}, JSON: json.RawMessage(`{"transactions":[` + strings.Join(hashes, ",") + `]}`),
		})
	}
	check := TransactionCheck(forwarded.NewView(blocks, 0, 0), sha256.Sum256(nil))
	for b.Loop() {
		if err := check(json.RawMessage("null")); err != nil {
			b.Fatal(err)
		}
	}
}
