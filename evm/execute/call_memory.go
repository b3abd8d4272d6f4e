package execute

import (
	"errors"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

// callMemory is how much, in bytes, the state of one call may grow by.
//
// Gas bounds the memory of a call in two ways. What a frame addresses costs the
// square of its size: w words cost w²/512, and a call passes on 63/64 of its gas
// at most, so that all frames which are open at once hold at most
// √(64·512·gas) words together: 105 MiB for 360 million gas (ten times a block of
// 36 million), 250 MiB for maxCallGas. Before EIP-150 all gas is passed on, 1024
// frames deep: √(1024·512·gas), 160 MiB for maxCallGasFrontier. That is bound enough. What a call
// changes or reads in the state is kept as well, to be reverted or read again,
// and costs as little as 100 gas for some 300 bytes (TSTORE): a gibibyte for
// the same 360 million; an account that is read is kept with its code, 24 KiB for
// 2600 gas. That is what is metered here. 128 MiB are room for the 171,000 cold
// slots that 360 million gas can read, several times over, and for the 138,000 cold
// accounts; and for 5,200 contracts that are run or copied, if each has as long a
// code as there may be.
//
// As many calls as newCallPlaces says run at once, so all of them together stay
// below (128 + 105) MiB times that number, and what the collector lags behind.
const callMemory = 128 << 20

// What one entry takes, in bytes, measured and rounded up: its place in the maps
// of the state and in the journal.
const (
	slotBytes     = 256
	accountBytes  = 768 // with its own maps, without its code
	writeBytes    = 320 // map entry, journal, refund
	transferBytes = 96
	logBytes      = 384 // besides its data
	snapshotBytes = 44  // with its mark in the list of what is warm
)

var errCallMemory = errors.New("execution aborted (memory limit of 128 MiB)")

// memoryMeter counts what the state of one call holds.
type memoryMeter struct {
	read     int    // stays until the end
	written  int    // in this run, what was reverted included: the maps and lists that held it stay as large
	exceeded bool   // from now on nothing more is kept
	abort    func() // ends the run
}

// write says whether there is room for so many bytes more, and takes them.
func (m *memoryMeter) write(bytes int) bool {
	m.written += bytes
	return m.check()
}

func (m *memoryMeter) fetch(bytes int) bool {
	m.read += bytes
	return m.check()
}

func (m *memoryMeter) check() bool {
	if !m.exceeded && m.read+m.written > callMemory {
		m.exceeded = true
		if m.abort != nil {
			m.abort()
		}
	}
	return !m.exceeded
}

// callState is the state that a call runs on: go-ethereum's, metered. The EVM
// looks for an abort only where it jumps; until then what is over the limit is
// dropped, as its result will be.
type callState struct {
	*state.StateDB
	memory memoryMeter
	warm   *warmList
}

func (s *callState) SetState(address common.Address, slot, value common.Hash) common.Hash {
	if !s.memory.write(writeBytes) {
		return common.Hash{}
	}
	return s.StateDB.SetState(address, slot, value)
}

func (s *callState) SetTransientState(address common.Address, slot, value common.Hash) {
	if s.memory.write(writeBytes) {
		s.StateDB.SetTransientState(address, slot, value)
	}
}

// AddBalance leaves out the accounts that a call without a price pays nothing:
// nothing comes after it that could see them touched.
func (s *callState) AddBalance(address common.Address, amount *uint256.Int, reason tracing.BalanceChangeReason) uint256.Int {
	unpaid := amount.IsZero() && (reason == tracing.BalanceIncreaseRewardTransactionFee || reason == tracing.BalanceIncreaseGasReturn)
	if unpaid || !s.memory.write(transferBytes) {
		return uint256.Int{}
	}
	return s.StateDB.AddBalance(address, amount, reason)
}

func (s *callState) AddLog(log *types.Log) {
	if s.memory.write(logBytes + len(log.Data)) {
		s.StateDB.AddLog(log)
	}
}

// Snapshot is never dropped: what it returns is going to be reverted to.
func (s *callState) Snapshot() int {
	s.memory.write(snapshotBytes)
	snapshot := s.StateDB.Snapshot()
	s.warm.mark(snapshot)
	return snapshot
}

func (s *callState) RevertToSnapshot(snapshot int) {
	s.StateDB.RevertToSnapshot(snapshot)
	s.warm.revert(snapshot)
}
