package archive

import (
	"bytes"
	"context"
	"testing"

	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
)

// listedRows are the rows of one node, newest first.
type listedRows struct {
	kv.Reader
	rows [][]byte
}

func (l listedRows) Descend(_ context.Context, _ *kv.Table, _ []byte, _ uint64, found func(uint64, []byte) (bool, error)) error {
	for i, row := range l.rows {
		if enough, err := found(uint64(len(l.rows)-i), row); enough || err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkNewestNode puts a branch with all children together from a whole row and three differences, about as
// many as a branch has on average.
//
//	go test ./evm/archive -run '^$' -bench NewestNode
func BenchmarkNewestNode(b *testing.B) {
	full := branchOf(b, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16)
	rows := listedRows{rows: [][]byte{append([]byte{nodeWhole}, full...)}}
	for i := range byte(3) {
		row := append([]byte{nodeDifference, i + 1, 0, 1 << i, 0x80 + common.HashLength}, bytes.Repeat([]byte{i}, common.HashLength)...)
		rows.rows = append([][]byte{row}, rows.rows...)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := NewestNode(b.Context(), rows, nil, 10, nil); err != nil {
			b.Fatal(err)
		}
	}
}
