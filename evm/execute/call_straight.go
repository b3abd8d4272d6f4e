package execute

import (
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"
)

// A canceled EVM ends at its next jump. Instructions that copy memory take so long for their gas that
// code without jumps runs on for seconds: 3.8 GB are copied for 360 million gas, and made first if
// they are beyond the end of what is copied. Where that is possible, each instruction looks whether
// the run is canceled. It then takes two to three times as long, so most calls must go without:
//
//	gas         code                    looks
//	up to 100M  any                     at jumps, calls and hashes
//	more        as compilers write it   at jumps, calls and hashes
//	more        a long stretch          at each instruction
//	more        of a nested creation    at each instruction

const (
	// unwatchedGas is the gas for which no code runs on for long.
	unwatchedGas = 100_000_000
	// slowStretch is how many slow instructions may come between two that end a canceled run. With
	// 600 million gas each copies 18 MB at most.
	slowStretch = 16
)

// knownStretches is how many codes are remembered, in about 1 MB.
const knownStretches = 4096

// codeWatch finds the code of a run that each instruction must be able to end.
type codeWatch struct {
	meter    *memoryMeter
	slow     *lru.Cache[common.Hash, bool] // by hash of the code: it has a slow stretch
	initCode []byte                        // of the message, until it runs; nil: none
	last     common.Hash                   // of ordinary code; most code is asked for twice in a row
}

// watchCodes has a run end soon after it is canceled, and returns its hooks, which are nil if there are none.
func (s *simulation) watchCodes(message *core.Message, hooks *tracing.Hooks) *tracing.Hooks {
	m := &s.state.memory
	m.codes = nil
	switch {
	case message.GasLimit <= unwatchedGas:
	case hooks != nil:
		return m.endingCanceled(hooks)
	default:
		m.codes = &codeWatch{meter: m, slow: s.executor.slow}
		if message.To == nil {
			m.codes.initCode = message.Data
		}
	}
	return hooks
}

// endingCanceled returns hooks that end a canceled run at the next instruction, in front of other
// hooks, which may be nil.
func (m *memoryMeter) endingCanceled(others *tracing.Hooks) *tracing.Hooks {
	return beforeOpcodes(others, func(uint64, byte, tracing.Gas, tracing.Gas, tracing.OpContext, []byte, int, error) { m.endCanceled() })
}

// runs is called before code runs, or is copied.
func (c *codeWatch) runs(hash common.Hash, code []byte) {
	if hash == c.last {
		return
	}
	slow, known := c.slow.Get(hash)
	if !known {
		slow = hasSlowStretch(code)
		c.slow.Add(hash, slow)
	}
	if slow {
		c.watch()
		return
	}
	c.last = hash
}

// creates is called before a contract is created. Only the code of the message is known.
func (c *codeWatch) creates() {
	if c.initCode == nil || hasSlowStretch(c.initCode) {
		c.watch()
	}
	c.initCode = nil
}

// watch has each instruction look, in frames that begin from now on. Nothing is left to find then.
func (c *codeWatch) watch() {
	c.meter.machine.Config.Tracer = c.meter.endingCanceled(nil)
	c.meter.codes = nil
}

// hasSlowStretch reports whether code has more slow instructions than slowStretch that may run without
// one between them that ends a canceled run. Calls do not count: one that cannot pay does not look.
func hasSlowStretch(code []byte) bool {
	slow := 0
	for i := 0; i < len(code); i++ {
		switch op := vm.OpCode(code[i]); op {
		case vm.JUMP, vm.JUMPI, vm.KECCAK256, vm.STOP, vm.RETURN, vm.REVERT, vm.INVALID, vm.SELFDESTRUCT:
			slow = 0
		case vm.CALLDATACOPY, vm.CODECOPY, vm.EXTCODECOPY, vm.RETURNDATACOPY, vm.MCOPY, vm.EXP:
			if slow++; slow > slowStretch {
				return true
			}
		case vm.DUPN, vm.SWAPN, vm.EXCHANGE:
			if i+1 < len(code) && skipped(code[i+1]) {
				i++
			}
		default:
			if op.IsPush() {
				i += int(op - vm.PUSH0)
			}
		}
	}
	return false
}

// skipped reports whether execution goes on behind an immediate of EIP-8024. Any other one may be PUSH or
// JUMPDEST, and ends the frame, as the instruction does before Amsterdam: only a jump reaches what follows.
func skipped(immediate byte) bool { return immediate <= 90 || immediate >= 128 }

// GetCode implements vm.StateDB. The EVM asks it before it runs code.
func (s *callState) GetCode(address common.Address) []byte {
	code := s.StateDB.GetCode(address)
	if codes := s.memory.codes; codes != nil && len(code) > 0 {
		codes.runs(s.StateDB.GetCodeHash(address), code)
	}
	return code
}

// CreateContract implements vm.StateDB. The EVM calls it before it runs the code that creates a contract.
func (s *callState) CreateContract(address common.Address) {
	if codes := s.memory.codes; codes != nil {
		codes.creates()
	}
	s.StateDB.CreateContract(address)
}
