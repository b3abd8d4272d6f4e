package trace

import (
	"encoding/binary"
	"errors"
	"hash/maphash"

	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/holiman/uint256"
)

// The library's tracers that keep what KECCAK256 hashes.
const (
	keccakTracerName  = "keccak256PreimageTracer"
	erc7562TracerName = "erc7562Tracer"
)

const (
	// preimageBytes is the size of a preimage in a result besides its data.
	preimageBytes = 80
	// preimagePadding is up to how far behind the memory the library copies a preimage, of an
	// instruction that fails because it cannot pay for the memory.
	preimagePadding = 1 << 20
)

// watchPreimages returns a hook that calls show, and counts each preimage once.
//
// Instructions that lack operands, or whose range overflows, are not shown: the library's tracers
// panic at them.
func (m *meter) watchPreimages(show tracing.OpcodeHook) tracing.OpcodeHook {
	var hash maphash.Hash
	seen := make(map[uint64]struct{})
	return func(pc uint64, op byte, gas, cost uint64, scope tracing.OpContext, returned []byte, depth int, err error) {
		if err != nil && (underflows(err) || vm.OpCode(op) == vm.KECCAK256 && overflows(scope.StackData())) {
			return
		}
		if vm.OpCode(op) == vm.KECCAK256 {
			key, size := preimage(&hash, scope)
			if _, ok := seen[key]; !ok && size > 0 {
				seen[key] = struct{}{}
				m.grow(preimageBytes + 2*size)
			}
		}
		if !m.ended {
			show(pc, op, gas, cost, scope, returned, depth, err)
		}
	}
}

func underflows(err error) bool {
	var underflow *vm.ErrStackUnderflow
	return errors.As(err, &underflow)
}

// overflows reports whether what KECCAK256 hashes ends above 2^63, to which the library rounds.
func overflows(stack []uint256.Int) bool {
	if len(stack) < 2 {
		return false
	}
	offset, length := int64(stack[len(stack)-1].Uint64()), int64(stack[len(stack)-2].Uint64())
	return offset >= 0 && length >= 0 && offset+length < 0
}

// preimage returns a hash and the size of what KECCAK256 hashes; 0 if the library keeps
// nothing of it.
func preimage(hash *maphash.Hash, scope tracing.OpContext) (key uint64, size int) {
	stack, memory := scope.StackData(), scope.MemoryData()
	if len(stack) < 2 {
		return 0, 0
	}
	offset, length := stack[len(stack)-1].Uint64(), stack[len(stack)-2].Uint64()
	end := offset + length
	if end < offset || end > uint64(len(memory))+preimagePadding {
		return 0, 0
	}
	hash.Reset()
	_, _ = hash.Write(memory[min(offset, uint64(len(memory))):min(end, uint64(len(memory)))])
	_, _ = hash.Write(binary.LittleEndian.AppendUint64(nil, length))
	return hash.Sum64(), int(length)
}
