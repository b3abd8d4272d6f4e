package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"testing"

	"ashlar/evm"
	"ashlar/evm/ingest/ingesttest"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/consensus/beacon"
	"github.com/ethereum/go-ethereum/consensus/ethash"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/params"
)

// accountRange is a page of debug_accountRange.
type accountRange struct {
	Root     string
	Accounts map[string]struct {
		Balance        string
		Nonce          uint64
		Root, CodeHash common.Hash
		Code           hexutil.Bytes
		Storage        map[common.Hash]string
		Key            common.Hash
	}
	Next *common.Hash
}

// The pages of accounts make up the whole state, which is compared with proofs.
func TestAccountRange(t *testing.T) {
	s := serveMade(t)
	var whole accountRange
	s.ask(t, &whole, "debug_accountRange", "0x3", "0x", 0, false, false, false)
	if whole.Root != fmt.Sprintf("%x", s.blocks[3].Root()) || whole.Next != nil || len(whole.Accounts) < 10 {
		t.Fatalf("root %s, next %v, %d accounts", whole.Root, whole.Next, len(whole.Accounts))
	}
	if slot := whole.Accounts[fmt.Sprintf("pre(%#x)", evm.HashAddress(logger))].Storage[crypto.Keccak256Hash(common.Hash{31: 5}.Bytes())]; slot != "2a" {
		t.Errorf("slot 5 of the logger is %q, expected 2a", slot)
	}
	var keys []common.Hash
	for start := new(common.Hash); start != nil; {
		var page accountRange
		s.ask(t, &page, "debug_accountRange", "0x3", start, 3, true, true, true)
		if len(page.Accounts) > 3 {
			t.Fatalf("a page of 3 has %d accounts", len(page.Accounts))
		}
		for _, account := range page.Accounts {
			if account.Code != nil || account.Storage != nil {
				t.Errorf("account %x has code or storage, which were not asked for", account.Key)
			}
			keys = append(keys, account.Key)
		}
		start = page.Next
	}
	slices.SortFunc(keys, common.Hash.Cmp)
	var want []common.Hash
	for _, account := range whole.Accounts {
		want = append(want, account.Key)
	}
	slices.SortFunc(want, common.Hash.Cmp)
	if !slices.Equal(keys, want) {
		t.Errorf("pages have %d accounts, the whole %d", len(keys), len(want))
	}
	for _, address := range knownAddresses(t, s) {
		var proof proofOfAccount
		s.ask(t, &proof, "eth_getProof", address, []string{}, "0x3")
		account, listed := whole.Accounts[fmt.Sprintf("pre(%#x)", evm.HashAddress(address))]
		switch exists := proof.CodeHash != (common.Hash{}); {
		case exists != listed:
			t.Errorf("%s is listed: %t, exists: %t", address, listed, exists)
		case exists && (account.Root != proof.StorageHash || account.CodeHash != proof.CodeHash || account.Balance != proof.Balance.ToInt().String()):
			t.Errorf("%s: %+v, proved %+v", address, account, proof)
		}
	}
}

type proofOfAccount struct {
	Balance               *hexutil.Big
	Nonce                 hexutil.Uint64
	CodeHash, StorageHash common.Hash
}

// knownAddresses are the accounts that the made chain can have touched.
func knownAddresses(t *testing.T, s *service) []common.Address {
	known := map[common.Address]bool{{0xc0}: true, {0xaa}: true, {9}: true, {0xff}: true}
	for address := range madeGenesis().Alloc {
		known[address] = true
	}
	for _, tx := range s.blocks[2].Transactions() {
		if tx.To() == nil {
			key, err := crypto.HexToECDSA(testKey())
			if err != nil {
				t.Fatal(err)
			}
			known[crypto.CreateAddress(crypto.PubkeyToAddress(key.PublicKey), tx.Nonce())] = true
		}
	}
	return slices.Collect(maps.Keys(known))
}

// The accounts that changed are those whose proofs are others.
func TestModifiedAccounts(t *testing.T) {
	s := serveMade(t)
	for _, blocks := range [][2]int{{0, 1}, {1, 2}, {2, 3}, {0, 4}} {
		var want []common.Address
		for _, address := range knownAddresses(t, s) {
			var before, after json.RawMessage
			var then proofOfAccount
			s.ask(t, &before, "eth_getProof", address, []string{}, hexutil.Uint64(blocks[0]))
			s.ask(t, &after, "eth_getProof", address, []string{}, hexutil.Uint64(blocks[1]))
			s.ask(t, &then, "eth_getProof", address, []string{}, hexutil.Uint64(blocks[1]))
			if then.CodeHash != (common.Hash{}) && accountOf(t, before) != accountOf(t, after) {
				want = append(want, address)
			}
		}
		slices.SortFunc(want, func(a, b common.Address) int { return evm.HashAddress(a).Cmp(evm.HashAddress(b)) })
		var byNumber, byHash []common.Address
		s.ask(t, &byNumber, "debug_getModifiedAccountsByNumber", blocks[0], blocks[1])
		s.ask(t, &byHash, "debug_getModifiedAccountsByHash", s.blocks[blocks[0]].Hash(), s.blocks[blocks[1]].Hash())
		if len(want) == 0 || !slices.Equal(byNumber, want) || !slices.Equal(byHash, want) {
			t.Errorf("blocks %v: by number %v, by hash %v, expected %v", blocks, byNumber, byHash, want)
		}
	}
	var one, two json.RawMessage
	s.ask(t, &one, "debug_getModifiedAccountsByNumber", 2)
	s.ask(t, &two, "debug_getModifiedAccountsByNumber", 1, 2)
	if string(one) != string(two) {
		t.Errorf("block 2 alone: %s, from 1 to 2: %s", one, two)
	}
}

// TestModifiedAccountsOfRandomChains compares the accounts that changed with the whole states before and after. In these chains
// accounts are touched and left as they were, destroyed, and created and destroyed again.
func TestModifiedAccountsOfRandomChains(t *testing.T) {
	config := *params.AllEthashProtocolChanges
	config.BerlinBlock, config.LondonBlock, config.ArrowGlacierBlock, config.GrayGlacierBlock = big.NewInt(10), big.NewInt(20), nil, nil
	for seed := range uint64(2) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			genesis, blocks := newRandomChain(seed).build(t, &config, 30)
			s := serve(t, genesis, ingesttest.SourceOf(blocks))
			states := make([]accountRange, len(blocks)+1)
			for number := range states {
				s.ask(t, &states[number], "debug_accountRange", hexutil.Uint64(number), "0x", 0, true, true, false)
			}
			gone := 0
			for _, span := range []int{1, 2, 7, 30} {
				for from := 0; from+span <= len(blocks); from += span {
					before, after := states[from].Accounts, states[from+span].Accounts
					var want, got []common.Hash
					for name, account := range after {
						if was, ok := before[name]; !ok || !reflect.DeepEqual(was, account) {
							want = append(want, account.Key)
						}
					}
					for name := range before {
						if _, ok := after[name]; !ok {
							gone++
						}
					}
					slices.SortFunc(want, common.Hash.Cmp)
					var modified []common.Address
					s.ask(t, &modified, "debug_getModifiedAccountsByNumber", from, from+span)
					for _, address := range modified {
						got = append(got, evm.HashAddress(address))
					}
					if !slices.Equal(got, want) {
						t.Errorf("from block %d to %d: %x, expected %x", from, from+span, got, want)
					}
				}
			}
			if gone == 0 {
				t.Error("no account was destroyed")
			}
		})
	}
}

// TestModifiedAndRestored: an account that changed and changed back is not among those that differ.
func TestModifiedAndRestored(t *testing.T) {
	toggle, genesis := common.Address{0x70}, madeGenesis()
	code := program.New().Push(0).Op(vm.SLOAD).Op(vm.ISZERO).Push(0).Op(vm.SSTORE).Bytes()
	genesis.Alloc[toggle] = types.Account{Nonce: 1, Code: code, Balance: new(big.Int)}
	key, signer := testECDSA(t), types.LatestSigner(genesis.Config)
	_, blocks, _ := core.GenerateChainWithGenesis(genesis, beacon.New(ethash.NewFaker()), 2, func(i int, b *core.BlockGen) {
		b.SetParentBeaconRoot(common.Hash{byte(i + 1)})
		b.AddTx(types.MustSignNewTx(key, signer, &types.LegacyTx{Nonce: uint64(i), To: &toggle, Gas: 100_000, GasPrice: new(big.Int).Add(b.BaseFee(), big.NewInt(1))}))
	})
	s := serve(t, genesis, ingesttest.SourceOf(blocks))
	for span, want := range map[[2]int]bool{{0, 1}: true, {1, 2}: true, {0, 2}: false} {
		var modified []common.Address
		s.ask(t, &modified, "debug_getModifiedAccountsByNumber", span[0], span[1])
		if slices.Contains(modified, toggle) != want || len(modified) == 0 {
			t.Errorf("blocks %v: %v, expected the contract among them: %t", span, modified, want)
		}
	}
}

// accountOf is the account in a proof, without the proof.
func accountOf(t *testing.T, proof json.RawMessage) string {
	var account proofOfAccount
	if err := json.Unmarshal(proof, &account); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%v %d %x %x", account.Balance.ToInt(), account.Nonce, account.CodeHash, account.StorageHash)
}
