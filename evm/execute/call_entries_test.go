package execute

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/core/vm/program"
	"github.com/ethereum/go-ethereum/params"
)

// TestReplacedStorageIsCounted: slots of storage that a call has replaced are not read, and before
// Berlin they do not become warm. They take memory all the same.
func TestReplacedStorageIsCounted(t *testing.T) {
	e, err := New(params.MainnetChainConfig)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld()
	w.put(contract, 1, looping(func(p *program.Program) { p.Op(vm.GAS, vm.SLOAD, vm.POP) }))
	at := w.at() // block 1,000 of the mainnet
	at.Header.Time, at.Header.BaseFee, at.Header.ExcessBlobGas, at.Header.BlobGasUsed = 0, nil, nil, nil
	s := e.newSimulation(t.Context(), at)
	options := CallOptions{State: StateOverrides{contract: {State: map[common.Hash]common.Hash{}}}}
	checkCallMemory(t, s, options, errCallMemory.Error())
}

// TestAttemptsCountEntriesOnce: an estimate runs a message several times, which needs the same entries.
func TestAttemptsCountEntriesOnce(t *testing.T) {
	w := newWorld()
	w.put(contract, 1, looping(func(p *program.Program) { p.Op(vm.GAS, vm.SLOAD, vm.POP) }))
	s := newCaller(t).newSimulation(t.Context(), w.at())
	defer s.release()
	var counted [3]int
	err := s.do(CallOptions{}, func(s *simulation) error {
		message, err := s.message(&Message{To: &contract, Gas: ptr[uint64](3_000_000)})
		if err != nil {
			return err
		}
		for i := range counted {
			if _, err := s.try(message, nil); err != nil {
				return err
			}
			counted[i] = s.state.memory.read + s.state.memory.written
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if counted[0] < 1000*256 || counted[1] != counted[0] || counted[2] != counted[0] {
		t.Errorf("%d bytes are counted after each attempt, want the same for 1,000 slots or more", counted)
	}
}
