package archive

import (
	"bytes"
	"math/big"
	"testing"

	"ashlar/evm"
	"ashlar/history/rows"
	"ashlar/kv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

func TestHeaderRow(t *testing.T) {
	base := &types.Header{Number: big.NewInt(5), Difficulty: big.NewInt(0), Extra: []byte("extra"), Time: 9}
	london := types.CopyHeader(base)
	london.BaseFee = big.NewInt(7)
	cancun := types.CopyHeader(london)
	cancun.WithdrawalsHash, cancun.BlobGasUsed, cancun.ExcessBlobGas = &common.Hash{1}, new(uint64), new(uint64)
	cancun.ParentBeaconRoot = &common.Hash{2}
	huge := new(big.Int).Lsh(big.NewInt(1), 300)
	for name, header := range map[string]*types.Header{"frontier": base, "london": london, "cancun": cancun} {
		for _, difficulty := range []*big.Int{new(big.Int), big.NewInt(1 << 40), huge} {
			block := types.NewBlockWithHeader(header)
			row, err := encodeHeader(block, difficulty)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeHeader(row)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got.Hash != block.Hash() || got.Header.Hash() != block.Hash() || got.Size != block.Size() || got.TotalDifficulty.Cmp(difficulty) != 0 {
				t.Errorf("%s: got %+v", name, got)
			}
			if stamp, err := decodeStamp(row); err != nil || stamp != (Stamp{block.Hash(), header.Time}) {
				t.Errorf("%s: got the stamp %+v, %v", name, stamp, err)
			}
		}
	}
}

// TestBodyRow has a block with everything that a body can hold.
func TestBodyRow(t *testing.T) {
	for name, body := range map[string]types.Body{
		"nothing": {},
		"uncles":  {Uncles: []*types.Header{{Number: big.NewInt(4), Difficulty: big.NewInt(1)}}},
		"withdrawals": {Withdrawals: types.Withdrawals{{Index: 1, Validator: 2, Address: common.Address{3}, Amount: 4}},
			Transactions: types.Transactions{typedTransaction(), typedTransaction()}},
		"no withdrawals": {Withdrawals: types.Withdrawals{}},
	} {
		t.Run(name, func(t *testing.T) {
			block := types.NewBlockWithHeader(&types.Header{Number: big.NewInt(5), Difficulty: big.NewInt(0)}).WithBody(body)
			senders := make([]common.Address, len(body.Transactions))
			for i := range senders {
				senders[i] = common.Address{byte(i + 1)}
			}
			row, err := encodeBody(block, senders)
			if err != nil {
				t.Fatal(err)
			}
			got, err := decodeBody(row)
			if err != nil {
				t.Fatal(err)
			}
			again, err := got.Block(block.Header())
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(mustEncode(t, again), mustEncode(t, block)) {
				t.Error("the block that comes out is another")
			}
			if got.HasUncles() != (len(body.Uncles) > 0) {
				t.Error("HasUncles is wrong")
			}
			for i, sender := range senders {
				if got.Sender(i) != sender {
					t.Errorf("sender %d is %s, want %s", i, got.Sender(i), sender)
				}
			}
		})
	}
	block := types.NewBlockWithHeader(&types.Header{Number: big.NewInt(5)}).WithBody(types.Body{Transactions: types.Transactions{typedTransaction()}})
	if _, err := encodeBody(block, nil); err == nil {
		t.Error("a block with a transaction and no sender was encoded")
	}
}

func typedTransaction() *types.Transaction {
	return types.NewTx(&types.DynamicFeeTx{
		ChainID: big.NewInt(1), Nonce: 3, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(2), Gas: 21000,
		To: &common.Address{9}, Value: big.NewInt(1), Data: []byte("data"), V: new(big.Int), R: big.NewInt(1), S: big.NewInt(1),
	})
}

func TestReceiptsRow(t *testing.T) {
	g := newGrower(t, 700)
	hashed := 0
	for n := range 80 {
		var want types.Receipts
		var transactions types.Transactions
		for i := range n % 7 {
			want = append(want, g.receipt())
			transactions = append(transactions, types.NewTx(&types.LegacyTx{Nonce: uint64(n<<8 | i)}))
		}
		if n%2 == 0 {
			transactions = nil
		}
		got, err := decodeReceipts(encodeReceipts(want, transactions))
		if err != nil {
			t.Fatal(err)
		}
		checkReceipts(t, &got, want)
		for i, receipt := range want {
			r, err := got.Receipt(i)
			if err != nil {
				t.Fatal(err)
			}
			var hash []byte
			if transactions != nil && len(receipt.Logs) > 0 {
				hash = transactions[i].Hash().Bytes()
				hashed++
			}
			if !bytes.Equal(r.TransactionHash, hash) {
				t.Errorf("receipt %d of %d logs has the transaction hash %x, want %x", i, len(receipt.Logs), r.TransactionHash, hash)
			}
		}
	}
	if hashed == 0 {
		t.Error("no receipt has a hash")
	}
}

func checkReceipts(t *testing.T, got *Receipts, want types.Receipts) {
	t.Helper()
	if got.Len() != len(want) {
		t.Fatalf("%d receipts, want %d", got.Len(), len(want))
	}
	var position uint64
	for i, receipt := range want {
		r, err := got.Receipt(i)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(r.StateRoot, receipt.PostState) || r.Succeeded != (receipt.Status == 1) || r.CumulativeGasUsed != receipt.CumulativeGasUsed ||
			r.FirstLog != position || r.LogCount != uint64(len(receipt.Logs)) {
			t.Fatalf("receipt %d is %+v, want %+v", i, r, receipt)
		}
		logs := r.Logs()
		for _, log := range receipt.Logs {
			l, ok, err := logs.Next()
			if !ok || err != nil || l.Address != log.Address || !bytes.Equal(l.Data, log.Data) || !bytes.Equal(l.Topics, joined(log.Topics)) {
				t.Fatalf("log %d is %+v, %v, %v, want %+v", position, l, ok, err, log)
			}
			for from := range i + 1 {
				if of, err := got.OfLog(position, from); err != nil || of != i {
					t.Fatalf("from receipt %d on, log %d is of receipt %d, %v, want %d", from, position, of, err, i)
				}
			}
			position++
		}
		if _, ok, err := logs.Next(); ok || err != nil {
			t.Fatalf("receipt %d has a log more: %v", i, err)
		}
	}
	if count, err := got.LogCount(); err != nil || count != position {
		t.Fatalf("%d logs, %v, want %d", count, err, position)
	}
	if of, err := got.OfLog(position, 0); err != nil || of != got.Len() {
		t.Fatalf("a log behind the last is of receipt %d, %v", of, err)
	}
}

func joined(topics []common.Hash) (all []byte) {
	for _, topic := range topics {
		all = append(all, topic[:]...)
	}
	return all
}

func TestAccountRow(t *testing.T) {
	most := new(uint256.Int).SetAllOne()
	for name, account := range map[string]*types.StateAccount{
		"gone":     nil,
		"empty":    types.NewEmptyStateAccount(),
		"person":   {Nonce: 1 << 40, Balance: uint256.NewInt(300), Root: types.EmptyRootHash, CodeHash: types.EmptyCodeHash[:]},
		"contract": {Nonce: 1, Balance: most, Root: common.Hash{1}, CodeHash: bytes.Repeat([]byte{7}, 32)},
		"storage":  {Balance: new(uint256.Int), Root: common.Hash{1}, CodeHash: types.EmptyCodeHash[:]},
	} {
		got, err := DecodeAccount(AppendAccount(nil, account))
		if err != nil || !sameAccount(got, account) {
			t.Errorf("%s: %+v, %v, want %+v", name, got, err, account)
		}
	}
	if row := AppendAccount(nil, nil); len(row) != 0 {
		t.Errorf("an account that is gone takes %x", row)
	}
}

func TestFullKey(t *testing.T) {
	want := common.Hash{0x12, 0x34, 31: 0xff}
	nibbles := make([]byte, 0, 64)
	for _, b := range want {
		nibbles = append(nibbles, b>>4, b&15)
	}
	for depth := range nibbles {
		rest := hexPrefix(nibbles[depth:])
		if got, ok := fullKey(nibbles[:depth], rest); !ok || got != want {
			t.Errorf("at depth %d: %x, %v, want %x", depth, got, ok, want)
		}
		if _, ok := fullKey(nibbles[:depth], append(rest, 0)); ok {
			t.Errorf("at depth %d: a key too long was taken", depth)
		}
	}
	if _, ok := fullKey(nibbles, nil); ok {
		t.Error("no rest at all was taken")
	}
}

// hexPrefix is the compact form of the last nibbles of a key, as a leaf holds it.
func hexPrefix(nibbles []byte) []byte {
	rest := []byte{0x20}
	if len(nibbles)%2 == 1 {
		rest[0] |= 0x10 | nibbles[0]
		nibbles = nibbles[1:]
	}
	for i := 0; i < len(nibbles); i += 2 {
		rest = append(rest, nibbles[i]<<4|nibbles[i+1])
	}
	return rest
}

// Rows of transactions name their block in 44 bits.
func TestGreatestBlock(t *testing.T) {
	for number, fits := range map[uint64]bool{rows.MaxNumber: true, rows.MaxNumber + 1: false} {
		block := types.NewBlockWithHeader(&types.Header{Number: new(big.Int).SetUint64(number), Difficulty: new(big.Int)})
		if err := EncodeContents(discard{}, &evm.Delta{Block: block}, new(big.Int)); (err == nil) != fits {
			t.Errorf("block %d: got error %v, want it to fit: %v", number, err, fits)
		}
	}
}

// discard puts no rows.
type discard struct{}

func (discard) Put(*kv.Table, []byte, uint64, []byte) {}
