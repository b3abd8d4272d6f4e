package api_test

import (
	"bytes"
	"testing"

	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/query"
	"ashlar/internal/raced"
	"ashlar/kv/kvtest"

	"github.com/ethereum/go-ethereum/crypto"
)

// TestFailedReads has one read of the store after the other fail: no answer may be one that lacks what could not be read.
func TestFailedReads(t *testing.T) {
	raced.Skip(t)
	made := serveMade(t)
	store, settled, executor := newChain(t, madeGenesis())
	importInto(t, settled, executor, madeGenesis(), ingesttest.SourceOf(made.blocks[1:]))
	for _, question := range []struct {
		method string
		args   []any
	}{
		{"debug_getModifiedAccountsByNumber", []any{1, 3}},
		{"debug_executionWitness", []any{"0x2"}},
		{"debug_accountRange", []any{"0x3", "0x", 0, false, false, false}},
		{"debug_storageRangeAt", []any{made.blocks[2].Hash(), 0, logger, "0x", 100}},
		{"eth_getTransactionBySenderAndNonce", []any{crypto.PubkeyToAddress(testECDSA(t).PublicKey), "0x1"}},
		{"eth_getAccount", []any{logger, "0x2"}},
	} {
		want := made.answer(t, question.method, question.args...)
		if want.Error != nil || len(want.Result) < 10 {
			t.Fatalf("%s: %s %s", question.method, want.Result, want.Error)
		}
		failed := 0
		for n := 0; ; n++ {
			broken := &kvtest.Failing{Store: store, Left: -1}
			a, err := archive.Open(t.Context(), broken)
			if err != nil {
				t.Fatal(err)
			}
			s := serveChain(query.NewChain(a, nil, executor))
			broken.Left = n
			got := s.answer(t, question.method, question.args...)
			if broken.Left >= 0 {
				if !bytes.Equal(got.Result, want.Result) {
					t.Errorf("%s: %s %s, expected %s", question.method, got.Result, got.Error, want.Result)
				}
				break
			}
			if failed++; got.Error == nil {
				t.Errorf("%s: read %d failed, and the answer is %.200s", question.method, n, got.Result)
			}
		}
		if failed == 0 {
			t.Errorf("%s: no read failed", question.method)
		}
		t.Logf("%s: %d reads", question.method, failed)
	}
}
