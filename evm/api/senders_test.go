package api_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"testing"

	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// chainsToAsk are chains of others, and generated ones.
func chainsToAsk(t *testing.T) map[string]func(*testing.T) *service {
	all := map[string]func(*testing.T) *service{
		"execution-apis": func(t *testing.T) *service { return serveVectors(t) },
		"Besu":           func(t *testing.T) *service { return besuChain(t, readTraces(t, "besu-trace")) },
	}
	for name, build := range indexedChains(t) {
		all[name] = func(t *testing.T) *service {
			genesis, blocks := build()
			return serve(t, genesis, ingesttest.SourceOf(blocks))
		}
	}
	return all
}

// askedTransaction is a transaction of a block with its sender.
type askedTransaction struct {
	Hash              common.Hash
	From              common.Address
	Nonce             hexutil.Uint64
	AuthorizationList []types.SetCodeAuthorization
}

// eachBlock calls visit with the transactions of each block after the genesis.
func (s *service) eachBlock(t *testing.T, visit func(number hexutil.Uint64, transactions []askedTransaction)) {
	t.Helper()
	var head hexutil.Uint64
	s.ask(t, &head, "eth_blockNumber")
	for number := hexutil.Uint64(1); number <= head; number++ {
		var block struct{ Transactions []askedTransaction }
		s.ask(t, &block, "eth_getBlockByNumber", number, true)
		visit(number, block.Transactions)
	}
}

// TestTransactionsBySender asks for every transaction of a chain by its sender and nonce, and for nonces that a contract or a
// delegation used up.
func TestTransactionsBySender(t *testing.T) {
	for chain, start := range chainsToAsk(t) {
		t.Run(chain, func(t *testing.T) {
			s := start(t)
			type slot struct {
				from  common.Address
				nonce hexutil.Uint64
			}
			sent, used := map[slot]common.Hash{}, map[slot]bool{}
			s.eachBlock(t, func(_ hexutil.Uint64, transactions []askedTransaction) {
				for _, tx := range transactions {
					sent[slot{tx.From, tx.Nonce}] = tx.Hash
					for _, a := range tx.AuthorizationList {
						if authority, err := a.Authority(); err == nil {
							used[slot{authority, hexutil.Uint64(a.Nonce)}] = true
						}
					}
					var receipt struct{ ContractAddress *common.Address }
					if s.ask(t, &receipt, "eth_getTransactionReceipt", tx.Hash); receipt.ContractAddress != nil {
						used[slot{*receipt.ContractAddress, 0}] = true
					}
				}
			})
			for one, hash := range sent {
				got, want := s.answer(t, "eth_getTransactionBySenderAndNonce", one.from, one.nonce), s.answer(t, "eth_getTransactionByHash", hash)
				if !bytes.Equal(got.Result, want.Result) || got.Error != nil {
					t.Errorf("nonce %d of %s: %s %s, expected %s", one.nonce, one.from, got.Result, got.Error, want.Result)
				}
			}
			maps.DeleteFunc(used, func(one slot, _ bool) bool { return sent[one] != common.Hash{} })
			for one := range used {
				if got := s.answer(t, "eth_getTransactionBySenderAndNonce", one.from, one.nonce); string(got.Result) != "null" {
					t.Errorf("nonce %d of %s, with which it sent nothing: %s %s", one.nonce, one.from, got.Result, got.Error)
				}
			}
			if len(sent) == 0 || len(used) == 0 {
				t.Errorf("%d transactions and %d nonces without one were asked for", len(sent), len(used))
			}
		})
	}
}

// TestWaitingBySender: a transaction of the pool is found like one of a block, also behind a gap. The block counts as soon as it has
// the transaction, although the pool still has it.
func TestWaitingBySender(t *testing.T) {
	o := serveOpen(t)
	bySender := func(nonce uint64) json.RawMessage {
		t.Helper()
		a := o.answer(t, "eth_getTransactionBySenderAndNonce", o.sender, hexutil.Uint64(nonce))
		if a.Error != nil {
			t.Fatalf("nonce %d: %s", nonce, a.Error)
		}
		return a.Result
	}
	next, queued := o.send(0), o.send(2)
	for nonce, hash := range map[uint64]common.Hash{0: next, 2: queued} {
		if want := o.answer(t, "eth_getTransactionByHash", hash).Result; !bytes.Equal(bySender(nonce), want) || len(want) < 10 {
			t.Errorf("waiting, nonce %d: %s, expected %s", nonce, bySender(nonce), want)
		}
	}
	var hash *common.Hash
	if o.ask(t, &hash, "ots_getTransactionBySenderAndNonce", o.sender, 0); hash != nil {
		t.Errorf("a waiting transaction in Otterscan's method: %s, expected null", hash)
	}
	if got := string(bySender(1)); got != "null" {
		t.Errorf("in the gap: %s, expected null", got)
	}
	block := o.build()
	if _, _, waits := o.chain.Pool().Get(next); !waits {
		t.Fatal("the pool has heard of the block")
	}
	var included struct{ Hash, BlockHash common.Hash }
	if err := json.Unmarshal(bySender(0), &included); err != nil || included.Hash != next || included.BlockHash != block.Hash() {
		t.Errorf("included: %+v, %v, expected %s in %s", included, err, next, block.Hash())
	}
	if got := o.members("eth_getTransactionBySenderAndNonce", o.sender, "0x2"); string(got["blockHash"]) != "null" {
		t.Errorf("still behind a gap: block %s, expected null", got["blockHash"])
	}
}

// TestAccounts compares eth_getAccount with what eth_getProof proves, after every few blocks.
func TestAccounts(t *testing.T) {
	absent, contracts := 0, 0
	for chain, start := range chainsToAsk(t) {
		t.Run(chain, func(t *testing.T) {
			s := start(t)
			seen := map[common.Address]bool{}
			s.eachBlock(t, func(number hexutil.Uint64, transactions []askedTransaction) {
				for _, tx := range transactions {
					var receipt struct{ ContractAddress, To *common.Address }
					s.ask(t, &receipt, "eth_getTransactionReceipt", tx.Hash)
					for _, address := range []*common.Address{&tx.From, receipt.To, receipt.ContractAddress} {
						if address != nil {
							seen[*address] = true
						}
					}
				}
				if number%7 != 1 {
					return
				}
				for address := range seen {
					for _, block := range []hexutil.Uint64{number, number / 2, 0} {
						var got *struct {
							Balance, Nonce        string
							CodeHash, StorageRoot common.Hash
						}
						var want struct {
							Balance, Nonce        string
							CodeHash, StorageHash common.Hash
						}
						s.ask(t, &got, "eth_getAccount", address, block)
						s.ask(t, &want, "eth_getProof", address, []string{}, block)
						switch {
						case want.CodeHash == common.Hash{}: // as in geth, of an account that is not there
							if absent++; got != nil {
								t.Errorf("%s after block %d: %+v, expected null", address, block, got)
							}
						case got == nil || got.Balance != want.Balance || got.Nonce != want.Nonce || got.CodeHash != want.CodeHash || got.StorageRoot != want.StorageHash:
							t.Errorf("%s after block %d: %+v, expected %+v", address, block, got, want)
						case got.CodeHash != types.EmptyCodeHash && got.StorageRoot != types.EmptyRootHash:
							contracts++
						}
					}
				}
			})
		})
	}
	if absent == 0 || contracts == 0 {
		t.Errorf("%d absent accounts and %d contracts with storage were compared", absent, contracts)
	}
}
