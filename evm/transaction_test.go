package evm

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// examples is a transaction of each type, encoded.
func examples(t testing.TB) [][]byte {
	access := types.AccessList{{Address: common.Address{1}, StorageKeys: []common.Hash{{2}}}}
	var encoded [][]byte
	for _, data := range []types.TxData{
		&types.LegacyTx{Nonce: 300, GasPrice: big.NewInt(7), Gas: 21000, To: &common.Address{9}, Value: big.NewInt(1), V: big.NewInt(37), R: big.NewInt(1), S: big.NewInt(2)},
		&types.LegacyTx{GasPrice: big.NewInt(7), Data: []byte{1, 2}, V: big.NewInt(28), R: big.NewInt(1), S: big.NewInt(2)},
		&types.AccessListTx{ChainID: big.NewInt(1), GasPrice: big.NewInt(7), AccessList: access, V: big.NewInt(1), R: big.NewInt(1), S: big.NewInt(2)},
		&types.DynamicFeeTx{ChainID: big.NewInt(1), GasTipCap: big.NewInt(2), GasFeeCap: big.NewInt(90), To: &common.Address{9}},
		&types.BlobTx{ChainID: uint256.NewInt(1), GasTipCap: uint256.NewInt(2), GasFeeCap: uint256.NewInt(90), Value: new(uint256.Int), BlobFeeCap: uint256.NewInt(3), BlobHashes: []common.Hash{{1}}},
		&types.SetCodeTx{ChainID: uint256.NewInt(1), GasTipCap: uint256.NewInt(2), GasFeeCap: uint256.NewInt(90), Value: new(uint256.Int), AuthList: []types.SetCodeAuthorization{{Nonce: 4}}},
	} {
		raw, err := types.NewTx(data).MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		encoded = append(encoded, raw)
	}
	return encoded
}

// FuzzReadTransaction holds that whatever go-ethereum decodes is read with the
// same fields, and that nothing makes the reader panic.
func FuzzReadTransaction(f *testing.F) {
	for _, raw := range examples(f) {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := ReadTransaction(raw)
		var want types.Transaction
		if want.UnmarshalBinary(raw) != nil || want.BlobTxSidecar() != nil {
			return
		}
		if err != nil {
			t.Fatalf("%x: %v, go-ethereum decodes it", raw, err)
		}
		v, r, s := want.RawSignatureValues()
		var to []byte
		if want.To() != nil {
			to = want.To()[:]
		}
		for name, pair := range map[string][2][]byte{
			"to": {got.To, to}, "data": {got.Data, want.Data()}, "value": {got.Value, want.Value().Bytes()},
			"v": {got.V, v.Bytes()}, "r": {got.R, r.Bytes()}, "s": {got.S, s.Bytes()},
		} {
			if !bytes.Equal(pair[0], pair[1]) {
				t.Errorf("%x: %s is %x, want %x", raw, name, pair[0], pair[1])
			}
		}
		if got.Type != want.Type() || got.Nonce != want.Nonce() || got.Gas != want.Gas() {
			t.Errorf("%x: %+v", raw, got)
		}
		checkPrices(t, &got, &want)
	})
}

// checkPrices compares prices where fees are of a size that blocks can hold.
func checkPrices(t *testing.T, got *Transaction, want *types.Transaction) {
	t.Helper()
	baseFee := big.NewInt(50)
	if want.GasFeeCap().Cmp(baseFee) < 0 || want.GasTipCap().BitLen() > 200 || want.GasFeeCap().BitLen() > 200 {
		return
	}
	price, tip := got.EffectiveGasPrice(uint256.NewInt(50)), got.EffectiveTip(uint256.NewInt(50))
	wantTip := want.EffectiveGasTipValue(baseFee)
	if tip.ToBig().Cmp(wantTip) != 0 || price.ToBig().Cmp(wantTip.Add(wantTip, baseFee)) != 0 {
		t.Errorf("price %v with a tip of %v; go-ethereum's tip is %v", &price, &tip, want.EffectiveGasTipValue(baseFee))
	}
}

// TestReadTransactionRefused cuts and changes each example: none of it is read
// as a transaction of another shape, and none makes the reader panic.
func TestReadTransactionRefused(t *testing.T) {
	for _, raw := range examples(t) {
		for n := range raw {
			if _, err := ReadTransaction(raw[:n]); err == nil {
				t.Errorf("%x is read as a whole transaction", raw[:n])
			}
		}
		if _, err := ReadTransaction(append(bytes.Clone(raw), 0)); err == nil {
			t.Errorf("%x with a byte more is read as a transaction", raw)
		}
	}
	if _, err := ReadTransaction([]byte{5, 0xc0}); err == nil {
		t.Error("a transaction of type 5 is read")
	}
}

func TestChainIDOfV(t *testing.T) {
	for v, want := range map[uint64]uint64{0: 0, 27: 0, 28: 0, 35: 0, 37: 1, 38: 1, 2709: 1337, 2710: 1337} {
		tx := Transaction{V: new(big.Int).SetUint64(v).Bytes()}
		if id, protected := tx.ChainIDOfV(); !id.Eq(uint256.NewInt(want)) || protected != (want != 0) {
			t.Errorf("v %d: chain %v, %v; want %d", v, &id, protected, want)
		}
	}
}
