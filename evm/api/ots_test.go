package api_test

import (
	"encoding/json"
	"math/big"
	"slices"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// parityFrame is a frame of trace_transaction.
type parityFrame struct {
	Type   string
	Action struct {
		CallType                         string
		From, To, Address, RefundAddress common.Address
		Value, Balance                   *hexutil.Big
		CreationMethod                   string
	}
	Result       struct{ Address common.Address }
	Error        string
	TraceAddress []int
}

type otsOperation struct {
	Type     int
	From, To common.Address
	Value    *hexutil.Big
}

// Otterscan's answers about the transactions of a chain agree with those of other methods.
func TestOtterscan(t *testing.T) {
	s := besuChain(t, readTraces(t, "besu-trace"))
	var head hexutil.Uint64
	s.ask(t, &head, "eth_blockNumber")
	operations, creations, attempts := 0, 0, 0
	for number := uint64(1); number <= uint64(head); number++ {
		var block struct {
			Transactions []*types.Transaction
		}
		s.ask(t, &block, "eth_getBlockByNumber", hexutil.Uint64(number), true)
		for _, tx := range block.Transactions {
			sender, err := types.Sender(types.HomesteadSigner{}, tx)
			if err != nil {
				t.Fatal(err)
			}
			var found *common.Hash
			s.ask(t, &found, "ots_getTransactionBySenderAndNonce", sender, tx.Nonce())
			if found == nil || *found != tx.Hash() {
				t.Errorf("nonce %d of %s: %v, expected %s", tx.Nonce(), sender, found, tx.Hash())
			}
			var frames []parityFrame
			s.ask(t, &frames, "trace_transaction", tx.Hash())
			var calls []struct {
				Depth int
				To    common.Address
			}
			s.ask(t, &calls, "ots_traceTransaction", tx.Hash())
			if len(calls) != len(frames) {
				t.Errorf("%s: %d calls, expected %d", tx.Hash(), len(calls), len(frames))
			}
			for i := range min(len(calls), len(frames)) {
				if calls[i].Depth != len(frames[i].TraceAddress) {
					t.Errorf("%s: call %d has the depth %d, expected %d", tx.Hash(), i, calls[i].Depth, len(frames[i].TraceAddress))
				}
				if i == 0 && frames[0].Type == "create" && frames[0].Error != "" {
					attempts++
					if would := crypto.CreateAddress(sender, tx.Nonce()); calls[0].To != would {
						t.Errorf("%s: a failed creation at %s, expected %s", tx.Hash(), calls[0].To, would)
					}
				}
			}
			operations += checkOperations(t, s, tx.Hash(), frames)
			creations += checkCreators(t, s, tx.Hash(), frames)
		}
		checkDetails(t, s, number, len(block.Transactions))
	}
	if operations == 0 || creations == 0 || attempts == 0 {
		t.Errorf("%d operations, %d creations and %d failed ones were compared", operations, creations, attempts)
	}
}

func checkOperations(t *testing.T, s *service, hash common.Hash, frames []parityFrame) int {
	t.Helper()
	var want []otsOperation
	for _, f := range frames {
		one := otsOperation{From: f.Action.From, To: f.Action.To, Value: f.Action.Value}
		switch {
		case len(f.TraceAddress) == 0, f.Type == "call" && (f.Action.CallType != "call" || f.Action.Value.ToInt().Sign() == 0):
			continue
		case f.Type == "create":
			one.Type, one.To = 2, f.Result.Address
			if f.Action.CreationMethod == "create2" {
				one.Type = 3
			}
		case f.Type == "suicide":
			one = otsOperation{Type: 1, From: f.Action.Address, To: f.Action.RefundAddress, Value: f.Action.Balance}
		}
		want = append(want, one)
	}
	var got []otsOperation
	s.ask(t, &got, "ots_getInternalOperations", hash)
	same := slices.EqualFunc(got, want, func(a, b otsOperation) bool {
		// A creation that failed has no address in Parity's form.
		return a.Type == b.Type && a.From == b.From && (a.To == b.To || b.To == common.Address{}) && a.Value.ToInt().Cmp(b.Value.ToInt()) == 0
	})
	if !same {
		t.Errorf("%s: operations %+v, expected %+v", hash, got, want)
	}
	return len(got)
}

// checkCreators compares the creators of the contracts that are there in the end.
func checkCreators(t *testing.T, s *service, hash common.Hash, frames []parityFrame) (compared int) {
	t.Helper()
	for _, f := range frames {
		var there bool
		if s.ask(t, &there, "ots_hasCode", f.Result.Address, "latest"); f.Type != "create" || f.Error != "" || !there {
			continue
		}
		var creator *struct {
			Hash    common.Hash
			Creator common.Address
		}
		s.ask(t, &creator, "ots_getContractCreator", f.Result.Address)
		if creator == nil || creator.Hash != hash || creator.Creator != f.Action.From {
			t.Errorf("creator of %s: %+v, expected %s in %s", f.Result.Address, creator, f.Action.From, hash)
		}
		compared++
	}
	return compared
}

// checkDetails compares the fees of a block, and the pages of its transactions, with its receipts.
func checkDetails(t *testing.T, s *service, number uint64, count int) {
	t.Helper()
	var receipts []map[string]json.RawMessage
	s.ask(t, &receipts, "eth_getBlockReceipts", hexutil.Uint64(number))
	fees := new(big.Int)
	for _, receipt := range receipts {
		var used hexutil.Uint64
		var price hexutil.Big
		if err := json.Unmarshal(receipt["gasUsed"], &used); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(receipt["effectiveGasPrice"], &price); err != nil {
			t.Fatal(err)
		}
		fees.Add(fees, new(big.Int).Mul(price.ToInt(), new(big.Int).SetUint64(uint64(used))))
	}
	var details struct {
		Block struct {
			TransactionCount int
			Hash             common.Hash
		}
		Issuance  struct{ BlockReward, UncleReward, Issuance *hexutil.Big }
		TotalFees *hexutil.Big
	}
	s.ask(t, &details, "ots_getBlockDetails", number)
	if details.TotalFees.ToInt().Cmp(fees) != 0 || details.Block.TransactionCount != count {
		t.Errorf("block %d: fees %v and %d transactions, expected %v and %d", number, details.TotalFees, details.Block.TransactionCount, fees, count)
	}
	if reward := details.Issuance.BlockReward.ToInt(); reward.Cmp(big.NewInt(2e18)) != 0 {
		t.Errorf("block %d: reward %v, expected 2 ether", number, reward)
	}
	var seen []common.Hash
	for page := 0; page*2 < count; page++ {
		var part struct {
			Receipts []struct{ TransactionHash common.Hash }
		}
		s.ask(t, &part, "ots_getBlockTransactions", number, page, 2)
		var hashes []common.Hash
		for _, receipt := range part.Receipts {
			hashes = append(hashes, receipt.TransactionHash)
		}
		seen = append(hashes, seen...)
	}
	for i, receipt := range receipts {
		var hash common.Hash
		if err := json.Unmarshal(receipt["transactionHash"], &hash); err != nil {
			t.Fatal(err)
		}
		if len(seen) != len(receipts) || seen[i] != hash {
			t.Fatalf("block %d: pages have %v, expected %s at %d", number, seen, hash, i)
		}
	}
}
