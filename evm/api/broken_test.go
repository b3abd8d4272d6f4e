package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"ashlar/evm"
	"ashlar/evm/archive"
	"ashlar/evm/ingest/ingesttest"
	"ashlar/evm/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// TestTransactionsThatDoNotRunAgain: a transaction of a stored block that cannot run again means that the store is broken. That is
// an internal error, not one of a simulation that the client could correct. The state is wrong before the block, whose transactions
// are run in order, or within it.
func TestTransactionsThatDoNotRunAgain(t *testing.T) {
	for _, within := range []bool{false, true} {
		t.Run(fmt.Sprint("within ", within), func(t *testing.T) { checkDoNotRunAgain(t, within) })
	}
}

func checkDoNotRunAgain(t *testing.T, within bool) {
	made := serveMade(t)
	store, settled, executor := newChain(t, madeGenesis())
	importInto(t, settled, executor, madeGenesis(), ingesttest.SourceOf(made.blocks[1:]))
	key, err := crypto.HexToECDSA(testKey())
	if err != nil {
		t.Fatal(err)
	}
	sender := evm.HashAddress(crypto.PubkeyToAddress(key.PublicKey))
	accounts := archive.NamedTables().Accounts
	versions := store.Scan(t.Context(), accounts, sender[:], 0, math.MaxUint64)
	defer versions.Close()
	var numbers []uint64
	var last []byte
	for versions.Next() {
		if last = bytes.Clone(versions.Value()); accounts.BlockOf(versions.Sort()) < 2 {
			numbers = append(numbers, versions.Sort())
		}
	}
	batch := store.NewBatch()
	if within {
		nonce := evm.Account{Exists: true, Nonce: 1000, CodeHash: types.EmptyCodeHash}
		history := evm.KeyChanges[evm.Account]{Values: []evm.Step[evm.Account]{{Step: 0, Value: nonce}}, Back: true}
		settled.PutTraces(batch, 2, &evm.Traces{Changes: &evm.Changes{Transactions: len(made.blocks[2].Transactions()), Accounts: []evm.AccountChanges{{Address: sender, KeyChanges: history}}}})
	} else {
		for _, number := range numbers { // the sender has the nonce of the last block in all
			batch.Put(accounts, sender[:], number, last)
		}
		batch.Delete(archive.NamedTables().TxChanges, make([]byte, 8), 2)
	}
	if err := store.Write(t.Context(), batch); err != nil || len(numbers) == 0 {
		t.Fatalf("%d versions, %v", len(numbers), err)
	}
	if settled, err = archive.Open(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	s := serveChain(query.NewChain(settled, nil, executor))
	transactions := made.blocks[2].Transactions()
	hash := transactions[len(transactions)-1].Hash()
	for method, params := range map[string][]any{
		"debug_traceTransaction":        {hash},
		"debug_traceBlockByNumber":      {"0x2"},
		"debug_intermediateRoots":       {made.blocks[2].Hash()},
		"trace_transaction":             {hash},
		"trace_block":                   {"0x2"},
		"trace_replayTransaction":       {hash, []string{"trace"}},
		"eth_callMany":                  {[]any{map[string]any{"transactions": []any{map[string]any{"to": logger}}}}, map[string]any{"blockNumber": "0x2", "transactionIndex": len(transactions) - 1}},
		"debug_traceCall":               {map[string]any{"to": logger}, "0x2", map[string]any{"txIndex": "0x1"}},
		"debug_traceBlockByHash":        {made.blocks[2].Hash(), map[string]any{"tracer": `{fault: function() {}, result: function() { return 1 }}`}},
		"trace_replayBlockTransactions": {"0x2", []string{"trace"}},
	} {
		if within && !strings.HasSuffix(strings.ToLower(method), "transaction") {
			continue // it runs the block in order, or no transaction of it
		}
		a := s.answer(t, method, params...)
		var failed struct{ Code int }
		if err := json.Unmarshal(a.Error, &failed); err != nil || failed.Code != jsonrpc.CodeInternal {
			t.Errorf("%s: %s %s, expected an internal error", method, a.Result, a.Error)
		}
	}
}
