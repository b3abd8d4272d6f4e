package execute

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/types/bal"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/holiman/uint256"
)

// oldState is a state in which each account has nonce 5 and each slot the value 9.
type oldState struct{ state.Reader }

func (oldState) Account(common.Address) (*types.StateAccount, error) {
	account := types.NewEmptyStateAccount()
	account.Nonce = 5
	return account, nil
}
func (oldState) Storage(common.Address, common.Hash) (common.Hash, error) { return common.Hash{9}, nil }
func (oldState) Has(common.Address, common.Hash) bool                     { return false }
func (oldState) Code(common.Address, common.Hash) []byte                  { return []byte("old") }
func (oldState) CodeSize(common.Address, common.Hash) int                 { return 3 }

// testList returns a list of accounts with each kind of change, and of one that is only read.
func testList(t *testing.T) *bal.BlockAccessList {
	t.Helper()
	list := bal.NewConstructionBlockAccessList()
	for i := range byte(40) {
		address := common.Address{i, 1}
		list.AccountRead(address)
		for step := uint32(i % 3); step < 9; step += 1 + uint32(i%4) {
			switch i % 5 {
			case 1:
				list.BalanceChange(step, address, uint256.NewInt(uint64(step)))
			case 2:
				list.NonceChange(address, step, uint64(10+step))
			case 3:
				list.CodeChange(address, step, bytes.Repeat([]byte{i}, int(step)))
			case 4:
				list.StorageRead(address, common.Hash{2})
				for slot := range i {
					list.StorageWrite(step, address, common.Hash{7: slot}, common.Hash{byte(step), slot})
				}
			}
		}
	}
	return list.ToEncodingObj()
}

func encodeList(t *testing.T, list any) []byte {
	t.Helper()
	encoded, err := rlp.EncodeToBytes(list)
	if err != nil {
		t.Fatal(err)
	}
	return encoded
}

// At each step, a reader of the encoded list returns the accounts, slots and codes that go-ethereum's reader of the decoded list returns.
func TestEncodedListIsTheList(t *testing.T) {
	list := testList(t)
	split, err := splitList(encodeList(t, list))
	if err != nil {
		t.Fatal(err)
	}
	fail := func(err error) { t.Error(err) }
	for step := range 10 {
		want := state.NewReaderWithBlockLevelAccessList(oldState{}, list.Lookup(), step)
		got := &listReader{Reader: oldState{}, list: split, step: step, fail: fail}
		for i := range byte(41) {
			for _, address := range []common.Address{{i}, {i, 1}, {i, 2}} {
				before, _ := want.Account(address)
				if account, err := got.Account(address); err != nil || account.Nonce != before.Nonce || !account.Balance.Eq(before.Balance) || !bytes.Equal(account.CodeHash, before.CodeHash) {
					t.Errorf("step %d: account %s is %+v, %v, expected %+v", step, address, account, err, before)
				}
				for slot := range byte(41) {
					before, _ := want.Storage(address, common.Hash{7: slot})
					if value, err := got.Storage(address, common.Hash{7: slot}); err != nil || value != before {
						t.Errorf("step %d: slot %d of %s is %s, %v, expected %s", step, slot, address, value, err, before)
					}
				}
				hash := common.Hash{1}
				if code := got.Code(address, hash); !bytes.Equal(code, want.Code(address, hash)) || got.CodeSize(address, hash) != len(code) || got.Has(address, hash) != want.Has(address, hash) {
					t.Errorf("step %d: code %x of %s, expected %x", step, code, address, want.Code(address, hash))
				}
			}
		}
	}
}

// A list that is damaged is refused as a whole, or where an account is asked for.
func TestDamagedList(t *testing.T) {
	list := testList(t)
	whole := encodeList(t, list)
	disordered := *list
	disordered = append(bal.BlockAccessList{disordered[1], disordered[0]}, disordered[2:]...)
	for what, encoded := range map[string][]byte{
		"no bytes":                     nil,
		"a string":                     {0x83, 1, 2, 3},
		"an account that is a string":  encodeList(t, [][]byte{{1}}),
		"an account without members":   encodeList(t, [][]string{{}}),
		"an address that is too short": encodeList(t, [][][]byte{{{1, 2}}}),
		"its end is missing":           whole[:len(whole)-1],
		"something comes after it":     append(bytes.Clone(whole), 0x80),
		"its addresses do not ascend":  encodeList(t, &disordered),
	} {
		if _, err := splitList(encoded); err == nil {
			t.Errorf("%s: no error", what)
		}
	}
	address := common.Address{7}
	split, err := splitList(encodeList(t, [][][]byte{{address[:], {1}}}))
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	r := &listReader{Reader: oldState{}, list: split, fail: func(err error) { failed = err }}
	if code := r.Code(address, common.Hash{1}); len(code) > 0 || failed == nil || !strings.Contains(failed.Error(), address.String()) {
		t.Errorf("code %x, failure %v, expected one that names the account", code, failed)
	}
	if r.Has(address, common.Hash{1}) {
		t.Error("there is code")
	}
	if _, err := r.Account(address); !errors.Is(err, failed) && err.Error() != failed.Error() {
		t.Errorf("account: %v, expected %v", err, failed)
	}
	if _, err := r.Storage(address, common.Hash{1}); err == nil {
		t.Error("storage: no error")
	}
	if account, err := r.Account(common.Address{8}); err != nil || account.Nonce != 5 {
		t.Errorf("an account that is not damaged: %+v, %v", account, err)
	}
}
