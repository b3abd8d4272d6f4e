package api_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// TestTraceStrangeBlock: debug_traceBlock refuses blocks whose fees cannot be those of any that
// follows the parent. The price of blobs for such an excess takes all memory and never ends.
func TestTraceStrangeBlock(t *testing.T) {
	s := serveMade(t)
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	var nonce hexutil.Uint64
	s.ask(t, &nonce, "eth_getTransactionCount", crypto.PubkeyToAddress(key.PublicKey), "0x2")
	tx := types.MustSignNewTx(key, types.HomesteadSigner{}, &types.LegacyTx{
		Nonce: uint64(nonce), GasPrice: big.NewInt(1e10), Gas: 100_000, Data: common.FromHex("484a"), // BASEFEE, BLOBBASEFEE
	})
	huge, first := uint64(math.MaxUint64), *s.blocks[2].BlobGasUsed()+*s.blocks[2].ExcessBlobGas()
	for name, test := range map[string]struct {
		change func(h *types.Header)
		want   string // in the error; empty: the block is traced
	}{
		"excess of this block": {func(*types.Header) {}, ""},
		"largest excess":       {func(h *types.Header) { h.ExcessBlobGas = &first }, ""},
		"huge excess":          {func(h *types.Header) { h.ExcessBlobGas = &huge }, "excess blob gas 18446744073709551615 is above"},
		"no excess": {func(h *types.Header) {
			h.ExcessBlobGas, h.BlobGasUsed, h.ParentBeaconRoot, h.RequestsHash = nil, nil, nil, nil
		}, "no excess blob gas"},
		"no base fee, no excess": {func(h *types.Header) {
			*h = types.Header{ParentHash: h.ParentHash, Number: h.Number, Difficulty: h.Difficulty, GasLimit: h.GasLimit, Time: h.Time}
		}, "no base fee"},
	} {
		header := types.CopyHeader(s.blocks[3].Header())
		test.change(header)
		block := types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: types.Transactions{tx}, Withdrawals: []*types.Withdrawal{}})
		encoded, err := rlp.EncodeToBytes(block)
		if err != nil {
			t.Fatal(err)
		}
		got := s.answer(t, "debug_traceBlock", hexutil.Bytes(encoded), json.RawMessage(`{"tracer":"callTracer"}`))
		if test.want == "" && got.Error != nil || !strings.Contains(string(got.Error), test.want) || strings.Contains(string(got.Error), "-32603") {
			t.Errorf("%s: %s, want %q", name, got.Error, test.want)
		}
	}
}

// TestTraceInvalidTransactions: a transaction that cannot be run is a fault of the client that sent its
// block, with geth's code, whatever the tracer and the fault.
func TestTraceInvalidTransactions(t *testing.T) {
	s := serveMade(t)
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	var nonce hexutil.Uint64
	s.ask(t, &nonce, "eth_getTransactionCount", crypto.PubkeyToAddress(key.PublicKey), "0x2")
	id, price := s.blocks[2].Transactions()[3].ChainId(), big.NewInt(1e10)
	delegation := &types.SetCodeTx{ChainID: uint256.MustFromBig(id), Nonce: uint64(nonce), GasFeeCap: uint256.NewInt(1e10), GasTipCap: new(uint256.Int), Gas: 100_000, To: logger, Value: new(uint256.Int)}
	for _, test := range []struct {
		tx     *types.Transaction
		want   string
		signer types.Signer // nil: the chain's
	}{
		{types.NewTx(&types.LegacyTx{Nonce: uint64(nonce) + 1, GasPrice: price, Gas: 100_000, To: &logger}), "tracing failed: nonce too high", nil},
		{types.NewTx(delegation), "tracing failed: EIP-7702 transaction with empty auth list", nil},
		{types.NewTx(&types.LegacyTx{Nonce: uint64(nonce), GasPrice: price, Gas: 20_000, To: &logger}), "tracing failed: intrinsic gas too low", nil},
		{types.NewTx(&types.LegacyTx{Nonce: uint64(nonce), GasPrice: price, Gas: 100_000, To: &logger}), "tracing failed: transaction 0 [", types.LatestSignerForChainID(big.NewInt(99))},
	} {
		signer := test.signer
		if signer == nil {
			signer = types.LatestSignerForChainID(id)
		}
		tx, err := types.SignTx(test.tx, signer, key)
		if err != nil {
			t.Fatal(err)
		}
		block := types.NewBlockWithHeader(s.blocks[3].Header()).WithBody(types.Body{Transactions: types.Transactions{tx}, Withdrawals: []*types.Withdrawal{}})
		encoded, err := rlp.EncodeToBytes(block)
		if err != nil {
			t.Fatal(err)
		}
		for _, config := range []string{`{}`, `{"tracer":"callTracer"}`, `{"tracer":"{result: function() { return 1 }, fault: function() {}}"}`} {
			got := s.answer(t, "debug_traceBlock", hexutil.Bytes(encoded), json.RawMessage(config))
			if !strings.Contains(string(got.Error), "-32000") || !strings.Contains(string(got.Error), test.want) {
				t.Errorf("%s: %s %s, want -32000 %s", config, got.Result, got.Error, test.want)
			}
		}
	}
}

// TestTraceBlockOnWrongParent: the error about a parent that is stored, but not the block before,
// does not say that it is unknown.
func TestTraceBlockOnWrongParent(t *testing.T) {
	s := serveMade(t)
	for _, test := range []struct {
		parent common.Hash
		want   string
	}{
		{s.blocks[1].Hash(), "block 3 cannot follow block 1, its parent"},
		{s.blocks[3].Hash(), "block 3 cannot follow block 3, its parent"},
		{common.Hash{1}, "block " + common.Hash{1}.Hex() + " not found"},
	} {
		header := types.CopyHeader(s.blocks[3].Header())
		header.ParentHash = test.parent
		encoded, err := rlp.EncodeToBytes(types.NewBlockWithHeader(header).WithBody(types.Body{Withdrawals: []*types.Withdrawal{}}))
		if err != nil {
			t.Fatal(err)
		}
		got := s.answer(t, "debug_traceBlock", hexutil.Bytes(encoded))
		if !strings.Contains(string(got.Error), "-32000") || !strings.Contains(string(got.Error), test.want) {
			t.Errorf("parent %s: %s %s, want %s", test.parent, got.Result, got.Error, test.want)
		}
	}
}

// TestTraceBlockWithHugeNumbers: a number of a header that is too large is an error, and not cut to the size that
// the number has in blocks. So is extra data that is too long.
func TestTraceBlockWithHugeNumbers(t *testing.T) {
	s := serveMade(t)
	for name, test := range map[string]struct {
		change func(*types.Header)
		want   string
	}{
		"number":      {func(h *types.Header) { h.Number.SetBit(h.Number, 64, 1) }, "too large block number: bitlen 65"},
		"number 2^64": {func(h *types.Header) { h.Number.Lsh(big.NewInt(1), 64) }, "too large block number: bitlen 65"},
		"difficulty":  {func(h *types.Header) { h.Difficulty.SetBit(h.Difficulty, 1000, 1) }, "too large block difficulty: bitlen 1001"},
		"base fee":    {func(h *types.Header) { h.BaseFee.SetBit(h.BaseFee, 256, 1) }, "too large base fee: bitlen 257"},
		"extra data":  {func(h *types.Header) { h.Extra = make([]byte, 100<<10+1) }, "too large block extradata: size 102401"},
	} {
		t.Run(name, func(t *testing.T) {
			header := types.CopyHeader(s.blocks[3].Header())
			test.change(header)
			encoded, err := rlp.EncodeToBytes(types.NewBlockWithHeader(header).WithBody(types.Body{Transactions: s.blocks[3].Transactions(), Withdrawals: []*types.Withdrawal{}}))
			if err != nil {
				t.Fatal(err)
			}
			got := s.answer(t, "debug_traceBlock", hexutil.Bytes(encoded), json.RawMessage(`{"tracer":"callTracer"}`))
			if !strings.Contains(string(got.Error), "-32000") || !strings.Contains(string(got.Error), test.want) {
				t.Errorf("%.200s %s, want -32000 %s", got.Result, got.Error, test.want)
			}
		})
	}
}

// TestHugeNumbers: a signed transaction whose numbers do not fit into 256 bits is an error of the
// client.
func TestHugeNumbers(t *testing.T) {
	s := serveMade(t)
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	huge, one := new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1)
	for _, data := range []types.TxData{
		&types.LegacyTx{GasPrice: one, Value: huge, Gas: 21000, To: &logger},
		&types.LegacyTx{GasPrice: huge, Value: one, Gas: 21000, To: &logger},
		&types.DynamicFeeTx{ChainID: s.blocks[2].Transactions()[3].ChainId(), GasTipCap: huge, GasFeeCap: huge, Value: one, Gas: 21000, To: &logger},
	} {
		tx := types.MustSignNewTx(key, types.LatestSignerForChainID(s.blocks[2].Transactions()[3].ChainId()), data)
		raw, err := tx.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if got := s.answer(t, "trace_rawTransaction", hexutil.Bytes(raw), []string{"trace"}); !strings.Contains(string(got.Error), "-32602") {
			t.Errorf("trace_rawTransaction: %s %s", got.Result, got.Error)
		}
		block := types.NewBlockWithHeader(s.blocks[3].Header()).WithBody(types.Body{Transactions: types.Transactions{tx}, Withdrawals: []*types.Withdrawal{}})
		encoded, err := rlp.EncodeToBytes(block)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.answer(t, "debug_traceBlock", hexutil.Bytes(encoded)); got.Error == nil || strings.Contains(string(got.Error), "-32603") {
			t.Errorf("debug_traceBlock: %s %s", got.Result, got.Error)
		}
	}
}
