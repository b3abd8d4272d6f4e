package archive

import (
	"errors"
	"testing"

	"ashlar/history/rows"
	"ashlar/internal/memory"
	"ashlar/starknet"
)

// The decoders must reject an invalid row with ErrCorrupt, or return something that can be read to
// its end, in memory proportional to the row.

// rowFactor bounds the memory per byte of a row: a felt takes as little as one byte in a row, and
// 32 in memory.
const rowFactor = 128

func corrupt(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, rows.ErrCorrupt) {
		t.Fatalf("%v, want ErrCorrupt", err)
	}
}

func seed(f *testing.F, row func(block *starknet.Block) []byte) {
	for _, block := range makeBlocks(0, 5) {
		f.Add(row(block))
	}
	f.Add([]byte{})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01})
}

func FuzzHeaderRow(f *testing.F) {
	seed(f, encodeHeader)
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+rowFactor*len(row), func() {
			_, err := decodeHeader(7, row)
			corrupt(t, err)
		})
	})
}

func FuzzTransactionsRow(f *testing.F) {
	seed(f, encodeTransactions)
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+rowFactor*len(row), func() { checkTransactionsRow(t, row) })
	})
}

func checkTransactionsRow(t *testing.T, row []byte) {
	all, err := decodeTransactions(row)
	corrupt(t, err)
	if err != nil {
		return
	}
	for i := range all.Len() {
		_ = all.Hash(i)
		_, err := all.Transaction(i)
		corrupt(t, err)
	}
}

func FuzzEventsRow(f *testing.F) {
	seed(f, func(block *starknet.Block) (first []byte) {
		eventRows(block, func(group uint64, row []byte) {
			if group == 0 {
				first = row
			}
		})
		return first
	})
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+rowFactor*len(row), func() { checkEventsRow(t, row) })
	})
}

func checkEventsRow(t *testing.T, row []byte) {
	for position := range groupEvents {
		event, err := decodeEvent(row, position)
		corrupt(t, err)
		if err != nil {
			return
		}
		var felt starknet.Felt
		for _, list := range []Felts{event.Keys, event.Data} {
			for ok := true; ok && err == nil; {
				ok, err = list.Next(&felt)
				corrupt(t, err)
			}
		}
	}
}
