package network

import (
	"reflect"
	"testing"

	"ashlar/family"
	"ashlar/internal/familytest"
	"ashlar/starknet"
	"ashlar/starknet/source/synthetic"
)

func TestDemoOnFullDisk(t *testing.T) { familytest.DemoOnFullDisk(t, Family{}, checkContents) }

// checkContents compares the blocks of a demo with those that were made for it.
func checkContents(t *testing.T, n family.Network) {
	t.Helper()
	view := n.(*network).chain.View()
	made := synthetic.New(synthetic.Default())
	for number := uint64(0); number <= view.Span().Last.Number; number++ {
		header, err := view.Header(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		transactions, err := view.Transactions(t.Context(), number)
		if err != nil {
			t.Fatal(err)
		}
		block := made.Next()
		var got, want []starknet.Felt
		for i := range transactions.Len() {
			got = append(got, transactions.Hash(i))
		}
		for i := range block.Transactions {
			want = append(want, block.Transactions[i].Hash)
		}
		block.Timestamp = header.Timestamp // of the moment when it was made
		if !reflect.DeepEqual(header.Header, block.Header) || !reflect.DeepEqual(got, want) {
			t.Fatalf("block %d is %+v with the transactions %s, expected %+v with %s", number, header.Header, got, block.Header, want)
		}
	}
}
