package archive

import (
	"bytes"
	"errors"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// What a decoder is fed here is a row of another kind, or a row that is broken:
// it must say ErrCorrupt or return something that can be read to its end.

// seedRows adds rows of a few blocks to the seeds.
func seedRows(f *testing.F, of func(g *grower, n int) []byte) {
	g := newGrower(f, 1)
	for n := range 6 {
		g.block()
		f.Add(of(g, n))
	}
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xff}, 40))
}

func corrupt(t *testing.T, err error) {
	t.Helper()
	if err != nil && !errors.Is(err, ErrCorrupt) {
		t.Fatalf("%v, want ErrCorrupt", err)
	}
}

func FuzzHeaderRow(f *testing.F) {
	seedRows(f, func(g *grower, n int) []byte {
		row, err := encodeHeader(g.blocks[n].Block, g.blocks[n].Block.Difficulty())
		if err != nil {
			f.Fatal(err)
		}
		return row
	})
	f.Fuzz(func(t *testing.T, row []byte) {
		header, err := decodeHeader(row)
		corrupt(t, err)
		if err == nil && (header.Number == nil || header.Difficulty == nil || header.TotalDifficulty == nil) {
			t.Fatal("a header without its numbers")
		}
	})
}

func FuzzBodyRow(f *testing.F) {
	seedRows(f, func(g *grower, n int) []byte {
		row, err := encodeBody(g.blocks[n].Block, g.blocks[n].Senders)
		if err != nil {
			f.Fatal(err)
		}
		return row
	})
	f.Fuzz(func(t *testing.T, row []byte) {
		body, err := decodeBody(row)
		corrupt(t, err)
		if err != nil {
			return
		}
		for i := range body.Len() {
			_, err := body.Transaction(i)
			corrupt(t, err)
			_ = body.Sender(i)
		}
		_, err = body.Uncles()
		corrupt(t, err)
		_, err = body.Withdrawals()
		corrupt(t, err)
		_, err = body.Block(new(types.Header))
		corrupt(t, err)
	})
}

func FuzzReceiptsRow(f *testing.F) {
	seedRows(f, func(g *grower, n int) []byte { return encodeReceipts(g.blocks[n].Receipts) })
	f.Fuzz(func(t *testing.T, row []byte) {
		receipts, err := decodeReceipts(row)
		corrupt(t, err)
		if err != nil {
			return
		}
		count, err := receipts.LogCount()
		corrupt(t, err)
		if count > uint64(len(row)) {
			t.Fatalf("%d logs in %d bytes", count, len(row))
		}
		_, err = receipts.OfLog(count / 2)
		corrupt(t, err)
		for i := range receipts.Len() {
			receipt, err := receipts.Receipt(i)
			corrupt(t, err)
			if err != nil {
				continue
			}
			logs := receipt.Logs()
			for ok := true; ok; {
				var log Log
				log, ok, err = logs.Next()
				corrupt(t, err)
				if len(log.Topics)%common.HashLength != 0 {
					t.Fatalf("topics of %d bytes", len(log.Topics))
				}
			}
		}
	})
}

func FuzzAccountRow(f *testing.F) {
	seedRows(f, func(g *grower, n int) []byte {
		for _, account := range g.blocks[n].Accounts {
			return appendAccount(nil, account)
		}
		return nil
	})
	f.Fuzz(func(t *testing.T, row []byte) {
		account, err := decodeAccount(row)
		corrupt(t, err)
		if err != nil {
			return
		}
		again, err := decodeAccount(appendAccount(nil, account))
		if err != nil || !sameAccount(again, account) {
			t.Fatalf("%+v comes back as %+v, %v", account, again, err)
		}
	})
}

func FuzzLeafKey(f *testing.F) {
	seedRows(f, func(g *grower, n int) []byte {
		for _, node := range g.blocks[n].Nodes {
			return node.Blob
		}
		return nil
	})
	f.Fuzz(func(t *testing.T, blob []byte) {
		rest, ok := leafKey(blob)
		if ok && len(rest) == 0 {
			t.Fatal("a leaf without a key")
		}
		fullKey(blob, rest)
	})
}
