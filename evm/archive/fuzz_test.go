package archive

import (
	"bytes"
	"context"
	"errors"
	"math"
	"testing"

	"ashlar/evm"
	"ashlar/internal/memory"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// What a decoder is fed here is a row of another kind, or a row that is broken:
// it must say ErrCorrupt or return something that can be read to its end, with no
// more memory than in proportion to the row.

// What rows may take in memory for each of their bytes. Most decoders refer to
// the row; those that make go-ethereum's types of it make objects of a few hundred
// bytes from a few bytes.
const (
	rowFactor   = 32
	blockFactor = 128
)

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
		memory.Within(t, memory.Slack+blockFactor*len(row), func() { checkHeaderRow(t, row) })
	})
}

func checkHeaderRow(t *testing.T, row []byte) {
	header, err := decodeHeader(row)
	corrupt(t, err)
	if err == nil && (header.Number == nil || header.Difficulty == nil || header.TotalDifficulty == nil) {
		t.Fatal("a header without its numbers")
	}
	stamp, stampErr := decodeStamp(row)
	corrupt(t, stampErr)
	if err == nil && (stampErr != nil || stamp != (Stamp{header.Hash, header.Time})) {
		t.Fatalf("the stamp %+v, %v, of a header of %d", stamp, stampErr, header.Time)
	}
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
		memory.Within(t, memory.Slack+blockFactor*len(row), func() { checkBodyRow(t, row) })
	})
}

func checkBodyRow(t *testing.T, row []byte) {
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
	withdrawals, err := body.Withdrawals()
	corrupt(t, err)
	if err == nil && withdrawals != nil {
		if again, err := rlp.EncodeToBytes(withdrawals); err != nil || !bytes.Equal(again, body.withdrawals) {
			t.Fatalf("withdrawals %x are encoded as %x, %v", body.withdrawals, again, err)
		}
	}
	_, err = body.Block(new(types.Header))
	corrupt(t, err)
}

func FuzzReceiptsRow(f *testing.F) {
	seedRows(f, func(g *grower, n int) []byte {
		return encodeReceipts(g.blocks[n].Receipts, g.blocks[n].Block.Transactions())
	})
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+rowFactor*len(row), func() { checkReceiptsRow(t, row) })
	})
}

func checkReceiptsRow(t *testing.T, row []byte) {
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
	_, err = receipts.OfLog(count/2, receipts.Len()/4)
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
}

func FuzzAccountRow(f *testing.F) {
	seedRows(f, func(g *grower, n int) []byte {
		for _, account := range g.blocks[n].Accounts {
			return AppendAccount(nil, account)
		}
		return nil
	})
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+rowFactor*len(row), func() { checkAccountRow(t, row) })
	})
}

func checkAccountRow(t *testing.T, row []byte) {
	account, err := DecodeAccount(row)
	corrupt(t, err)
	if err != nil {
		return
	}
	again, err := DecodeAccount(AppendAccount(nil, account))
	if err != nil || !sameAccount(again, account) {
		t.Fatalf("%+v comes back as %+v, %v", account, again, err)
	}
}

// FuzzChangesRow reads a row as the changes of a block, and looks for each key that it has, and for one more, after several steps.
func FuzzChangesRow(f *testing.F) {
	seedRows(f, func(g *grower, n int) []byte {
		if changes := g.blocks[n].Traces.Changes; changes != nil {
			return encodeChanges(changes)
		}
		return nil
	})
	f.Add([]byte{2, 1, 7, 7, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0}) // 2^64 changes of a key
	f.Add([]byte{2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})                // 2^64-1 keys
	f.Add(append([]byte{2, 0, 1, 32}, make([]byte, 40)...))
	account := AppendAccount(nil, types.NewEmptyStateAccount())
	f.Fuzz(func(t *testing.T, row []byte) {
		memory.Within(t, memory.Slack+blockFactor*len(row), func() { checkChangesRow(t, row, account) })
	})
}

func checkChangesRow(t *testing.T, row, account []byte) {
	changes, err := decodeChanges(row)
	corrupt(t, err)
	if err != nil {
		return
	}
	if len(changes.marks) != changes.width*len(changes.values) {
		t.Fatalf("marks of %d bytes for %d keys", len(changes.marks), len(changes.values))
	}
	for i, values := range changes.values {
		if !values.after(math.MaxInt).changed {
			t.Fatalf("the key with the mark %x has no change: %x", changes.mark(i), values)
		}
	}
	history := newHistory(oneRow{value: account}, form{})
	changes.after = history.StateAt(1)
	keys := []common.Hash{{}}
	for i := range changes.values {
		var key common.Hash
		copy(key[:], changes.marks[i*changes.width:][:changes.width])
		keys = append(keys, key)
	}
	for name := range changes.named {
		keys = append(keys, common.BytesToHash([]byte(name)[:min(len(name), common.HashLength)]))
	}
	for _, key := range keys[:min(len(keys), 100)] { // their accounts take memory
		for _, step := range []int{0, 1, 1 << 40} {
			_, changed, err := changes.Account(context.Background(), key, step)
			corrupt(t, err)
			if found := changes.find(key, nil, step); found.changed != changed && err == nil {
				t.Fatalf("account %x after step %d: changed: %v, want %v", key, step, changed, found.changed)
			}
			_, _, err = changes.Slot(context.Background(), key, common.Hash{}, step)
			corrupt(t, err)
		}
	}
	for hash, code := range changes.codes {
		if crypto.Keccak256Hash(code) != hash {
			t.Fatalf("code %x has another hash than %x", code, hash)
		}
	}
}

func FuzzLeafKey(f *testing.F) {
	seedRows(f, func(g *grower, n int) []byte {
		for _, node := range g.blocks[n].Nodes {
			return node.Blob
		}
		return nil
	})
	f.Fuzz(func(t *testing.T, blob []byte) {
		memory.Within(t, memory.Slack+rowFactor*len(blob), func() { checkLeafKey(t, blob) })
	})
}

func checkLeafKey(t *testing.T, blob []byte) {
	rest, ok := leafKey(blob)
	if ok && len(rest) == 0 {
		t.Fatal("a leaf without a key")
	}
	fullKey(blob, rest)
}

// oneRow is a store in which every look finds the same row.
type oneRow struct {
	kv.Reader
	value []byte
}

func (o oneRow) Newest(_ context.Context, _ *kv.Table, _ []byte, at uint64, dst []byte) ([]byte, uint64, error) {
	return append(dst, o.value...), at, nil
}

func (o oneRow) Descend(_ context.Context, _ *kv.Table, _ []byte, at uint64, found func(uint64, []byte) (bool, error)) error {
	_, err := found(at, o.value)
	return err
}

// FuzzStateRow reads rows as a trie node at a path, of the accounts or of a
// storage, as an account and as a slot.
func FuzzStateRow(f *testing.F) {
	g := newGrower(f, 1)
	for range 6 {
		for _, node := range g.block().Nodes {
			if row, changed, err := appendNode(nil, nil, 0, node, stepsOf(0)); changed && err == nil {
				f.Add(row, []byte(node.Path), node.Owner == common.Hash{})
			}
		}
	}
	f.Add([]byte{nodeLeaf, 0x20}, make([]byte, 64), true)
	f.Add([]byte{nodeLeaf}, []byte{}, false)
	f.Fuzz(func(t *testing.T, row, path []byte, ofAccounts bool) {
		memory.Within(t, memory.Slack+rowFactor*(len(row)+len(path)), func() { checkStateRow(t, row, path, ofAccounts) })
	})
}

func checkStateRow(t *testing.T, row, path []byte, ofAccounts bool) {
	history := newHistory(oneRow{value: row}, form{})
	state := history.StateAt(1)
	owner := common.Hash{1}
	if ofAccounts {
		owner = common.Hash{}
	}
	hash := crypto.Keccak256Hash(row)
	if len(row) > 0 && row[0] == nodeWhole {
		hash = crypto.Keccak256Hash(row[1:])
	}
	blob, err := state.Node(context.Background(), owner, path, hash)
	if !errors.Is(err, evm.ErrMissing) {
		corrupt(t, err)
	}
	if err == nil && crypto.Keccak256Hash(blob) != hash {
		t.Fatalf("the node %x does not have the hash that was asked for", blob)
	}
	_, err = state.Account(context.Background(), owner)
	corrupt(t, err)
	_, err = state.Slot(context.Background(), owner, owner)
	corrupt(t, err)
}

func FuzzGenesisPointer(f *testing.F) {
	encoded, err := encodeGenesis(testGenesis())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded)
	f.Add([]byte(`{"gasLimit": "0x1", "difficulty": "0x1", "alloc": {}}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, pointer []byte) {
		memory.Within(t, memory.Slack+blockFactor*len(pointer), func() {
			genesis, err := decodeGenesis(pointer)
			corrupt(t, err)
			if err == nil && genesis.Config == nil {
				t.Fatal("a genesis without a configuration")
			}
		})
	})
}
