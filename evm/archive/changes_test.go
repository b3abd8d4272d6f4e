package archive

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"ashlar/evm"
	"ashlar/internal/raced"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// TestChangesOfEveryStep reads back, for random blocks and each of their steps, whether each account and slot has changed,
// and its value, and all codes. In crowded chains most keys have the mark of another one, which may have changed in the block
// or not.
func TestChangesOfEveryStep(t *testing.T) {
	raced.Skip(t)
	for seed := range uint64(3) {
		for _, crowded := range []bool{false, true} {
			t.Run(fmt.Sprint("seed ", seed, ", crowded ", crowded), func(t *testing.T) {
				g := newGrower(t, 1000+seed)
				g.crowded = crowded
				for n := range 40 {
					if n%10 == 5 {
						g.more = manyKeys
					}
					g.block()
				}
				a := grown(t, g)
				var met changesMet
				for number := range g.blocks {
					met.add(checkChanges(t, g, a, number))
				}
				if met.blocks == 0 || met.unsaid == 0 || met.wide == 0 || met.wide == met.blocks || met.codes == 0 || crowded && (met.named == 0 || met.alike == 0) {
					t.Errorf("the chain lacks something: %+v", met)
				}
			})
		}
	}
}

// TestMarkWidth: marks are longer from as many changed keys on as docs/format.md says. An account changes with its slots.
func TestMarkWidth(t *testing.T) {
	for _, test := range []struct {
		slots int
		back  bool
		want  byte
	}{{1598, false, 2}, {1599, false, 3}, {5000, true, 2}} {
		c := new(evm.Changes)
		for i := range test.slots {
			changed := evm.KeyChanges[common.Hash]{Values: []evm.Step[common.Hash]{{Step: 0}}, Back: test.back}
			c.Slots = append(c.Slots, evm.SlotChanges{Slot: common.Hash{byte(i >> 8), byte(i)}, KeyChanges: changed})
		}
		if row := encodeChanges(c); row[0] != test.want {
			t.Errorf("%d slots, changed back: %v: marks of %d bytes, want %d", test.slots, test.back, row[0], test.want)
		}
	}
}

// changesMet counts what a chain has.
type changesMet struct {
	blocks, unsaid, wide int
	named, alike, codes  int // alike: changed keys that are not named, and have the mark of one that the block has not changed
}

func (m *changesMet) add(n changesMet) {
	m.blocks, m.unsaid, m.wide = m.blocks+n.blocks, m.unsaid+n.unsaid, m.wide+n.wide
	m.named, m.alike, m.codes = m.named+n.named, m.alike+n.alike, m.codes+n.codes
}

// checkChanges compares the stored changes of a block with those of the model.
func checkChanges(t *testing.T, g *grower, a *Archive, number int) (met changesMet) {
	t.Helper()
	made := g.blocks[number].Traces.Changes
	got, err := a.Changes(t.Context(), uint64(number))
	if err != nil || (got == nil) != (made == nil) {
		t.Fatalf("block %d: the changes are %+v, %v, want %+v", number, got, err, made)
	}
	if made == nil {
		return changesMet{unsaid: 1}
	}
	want := wantedOf(made)
	met = changesMet{blocks: 1, named: len(got.named), codes: len(want.Codes)}
	keys := len(g.blocks[number].Accounts)
	for _, changed := range g.blocks[number].Slots {
		keys += len(changed)
	}
	wide := keys >= manyKeys
	if got.width == 3 != wide {
		t.Errorf("block %d: %d keys have changed, and marks have %d bytes", number, keys, got.width)
	}
	if wide {
		met.wide = 1
	}
	for step := range want.Transactions + 1 {
		for i := range grownAccounts {
			address := g.nth("account", i)
			checkChangedAccount(t, got, want, number, address, step)
			if g.blocks[number].Accounts[address] == nil && g.states[number].accounts[address] != nil && len(want.accounts[address].Values) == 0 && got.find(address, nil, step).changed {
				met.alike++
			}
			for j := range grownSlots {
				checkChangedSlot(t, got, want, number, slotPlace{address, g.nth("slot", j)}, step)
			}
		}
		for at := range want.slots {
			checkChangedSlot(t, got, want, number, at, step)
			checkChangedSlot(t, got, want, number, slotPlace{at.slot, at.address}, step) // has the same mark
		}
	}
	for n := range 20 {
		code := codeWithin(n)
		hash := crypto.Keccak256Hash(code)
		stored, ok, err := got.Code(t.Context(), hash)
		if _, within := want.Codes[hash]; ok != within || ok && !bytes.Equal(stored, code) || err != nil {
			t.Fatalf("block %d: code %x is %q, %v, %v, want it to be there: %v", number, hash, stored, ok, err, within)
		}
	}
	return met
}

func checkChangedAccount(t *testing.T, got *Changes, want wantedChanges, number int, address common.Hash, step int) {
	t.Helper()
	value, changed := valueAt(want.accounts[address], step)
	account, is, err := got.Account(t.Context(), address, step)
	if is != changed || err != nil || (account != nil) != value.Exists {
		t.Fatalf("block %d, step %d: account %x is %+v, changed: %v, %v; want %+v, changed: %v", number, step, address, account, is, err, value, changed)
	}
	if account == nil {
		return
	}
	// Once it has its last value the account is the one after the block, with the storage root that it has then.
	hasStorage := account.Root != types.EmptyRootHash
	if last, _ := valueAt(want.accounts[address], want.Transactions+1); value == last && account.Root != unknownRoot {
		hasStorage = value.HasStorage
	}
	same := evm.Account{Exists: true, HasStorage: hasStorage, Nonce: account.Nonce, Balance: *account.Balance, CodeHash: common.Hash(account.CodeHash)}
	if same != value {
		t.Fatalf("block %d, step %d: account %x is %+v, want %+v", number, step, address, same, value)
	}
}

func checkChangedSlot(t *testing.T, got *Changes, want wantedChanges, number int, at slotPlace, step int) {
	t.Helper()
	value, changed := valueAt(want.slots[at], step)
	if word, is, err := got.Slot(t.Context(), at.address, at.slot, step); word != value || is != changed || err != nil {
		t.Fatalf("block %d, step %d: slot %x of %x is %x, changed: %v, %v; want %x, changed: %v", number, step, at.slot, at.address, word, is, err, value, changed)
	}
}

// TestBrokenChangesRows: rows in which keys would not be found, or would have no value, are refused.
func TestBrokenChangesRows(t *testing.T) {
	name := append([]byte{common.HashLength}, make([]byte, common.HashLength)...)
	for want, row := range map[string][]byte{
		"":                                   {2, 2, 0, 1, 0, 2, 4, 4, 0},
		"mark 1 is not above the one before": {2, 2, 0, 2, 0, 1, 4, 4, 0},
		"lacks its last value":               append(append([]byte{2, 0, 1}, name...), 4, 0),
		"marks of 4 bytes":                   {4, 0, 0},
	} {
		_, err := decodeChanges(row)
		if want == "" && err != nil || want != "" && (!errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), want)) {
			t.Errorf("%x: %v, want %q", row, err, want)
		}
	}
	sameCode := []byte{changedSameCode, 1, 0}
	if _, err := decodeChangedAccount(sameCode, nil); !errors.Is(err, ErrCorrupt) {
		t.Errorf("an account with the code of none: %v", err)
	}
}
