package scratch

import (
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// counting is a state in which each account has code. It counts reads of code and the bytes of
// entries, and refuses more than it has room for.
type counting struct {
	codes, bytes, room int
}

func (c *counting) Account(common.Address) (*types.StateAccount, error) {
	account := types.NewEmptyStateAccount()
	account.CodeHash = common.Hash{1}.Bytes()
	return account, nil
}

func (c *counting) Storage(common.Address, common.Hash) (common.Hash, error) {
	return common.Hash{}, nil
}

func (c *counting) Code(common.Address, common.Hash) []byte {
	c.codes++
	return []byte{1}
}

func (c *counting) CodeSize(common.Address, common.Hash) int { return 1 }

func (c *counting) Grow(bytes int) bool {
	if c.bytes+bytes > c.room {
		return false
	}
	c.bytes += bytes
	return true
}

// Code that was read after a change stays when the change is reverted.
func TestCodeIsReadOnce(t *testing.T) {
	reader := &counting{room: 1 << 20}
	s := New(reader)
	defer s.Release()
	for range 10 {
		before := s.Snapshot()
		s.AddBalance(common.Address{1}, uint256.NewInt(1), tracing.BalanceChangeTransfer)
		if code := s.GetCode(common.Address{1}); len(code) != 1 {
			t.Fatalf("the code is %x", code)
		}
		s.RevertToSnapshot(before)
	}
	if reader.codes != 1 {
		t.Errorf("the code was read %d times, want once", reader.codes)
	}
	before := s.Snapshot()
	s.SetCode(common.Address{1}, []byte{2, 2}, tracing.CodeChangeUnspecified)
	s.RevertToSnapshot(before)
	if code := s.GetCode(common.Address{1}); len(code) != 1 {
		t.Errorf("after a change of code that was reverted, the code is %x", code)
	}
}

// Every entry is asked for once, also if only a warm one or one of replaced storage, and also if its
// use is reverted. Without room, tables do not grow.
func TestEntriesAreCounted(t *testing.T) {
	reader := &counting{room: accountBytes + 100*slotBytes}
	s := New(reader)
	defer s.Release()
	s.SetStorage(common.Address{1}, nil)
	for range 3 {
		before := s.Snapshot()
		for i := range uint64(100) {
			if key := value(i); i%2 == 0 {
				s.AddSlotToAccessList(common.Address{1}, key)
			} else {
				s.GetState(common.Address{1}, key)
			}
		}
		s.RevertToSnapshot(before)
	}
	if reader.bytes != reader.room {
		t.Errorf("%d bytes were counted, want %d", reader.bytes, reader.room)
	}
	before := s.Snapshot()
	for i := range uint64(10_000) {
		p := place{common.BigToAddress(new(big.Int).SetUint64(i + 1000)), common.Hash{1, 31: byte(i)}}
		s.SetState(p.address, p.slot, value(1))
		s.AddSlotToAccessList(p.address, p.slot)
	}
	if len(s.slots.rows) != 100 || len(s.slots.index) != 100 || len(s.accounts.rows) != 1 {
		t.Errorf("%d slots, %d in the index, and %d accounts are kept, want 100, 100 and 1", len(s.slots.rows), len(s.slots.index), len(s.accounts.rows))
	}
	s.RevertToSnapshot(before)
}
