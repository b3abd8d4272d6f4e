package trace

import (
	"context"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/tracing"
	"github.com/ethereum/go-ethereum/core/types"
)

// Approximate size in bytes of a native tracer's call frame and log without their data:
// names of members, addresses and numbers.
const (
	frameBytes = 300
	logBytes   = 200
)

// allowance ends a run when its result exceeds the room.
type allowance struct {
	room  Room
	end   context.CancelCauseFunc
	ended bool // the room is exhausted
}

// check takes the length of the answer so far.
func (a *allowance) check(length int) {
	if err := a.room.Check(length); err != nil {
		a.ended = true
		a.end(err)
	}
}

// meter estimates the length of the result of some of the library's tracers. When that exceeds
// the room after the length bytes already in the answer, end is called with the reason.
//
// Frames, logs and preimages of hashes are counted: their data can be large but cost little
// gas. What several tracers keep is counted for each of them. Everything else that tracers
// keep is bounded by the gas of the run.
type meter struct {
	allowance
	length int
}

func (m *meter) grow(bytes int) {
	if m.length += bytes; !m.ended {
		m.check(m.length)
	}
}

// watch returns hooks that call those of the tracer with a name, and count what it keeps.
//
// The run goes on until the EVM notices that it is stopped. Until then the library's tracers
// are shown whole frames or none, since some of them panic otherwise: callTracer, for example,
// when a transaction ends whose outermost frame it has not seen.
func (m *meter) watch(name string, hooks *tracing.Hooks) *tracing.Hooks {
	f := frameMeter{meter: m}
	watched := *hooks
	if enter := hooks.OnEnter; enter != nil {
		watched.OnEnter = func(depth int, kind byte, from, to common.Address, input []byte, gas uint64, value *big.Int) {
			if input, shown := f.enter(depth, input); shown {
				enter(depth, kind, from, to, input, gas, value)
			}
		}
	}
	if enter := hooks.OnEnterV2; enter != nil {
		watched.OnEnterV2 = func(depth int, kind byte, from, to common.Address, input []byte, gas tracing.Gas, value *big.Int) {
			if input, shown := f.enter(depth, input); shown {
				enter(depth, kind, from, to, input, gas, value)
			}
		}
	}
	if exit := hooks.OnExitV2; exit != nil {
		watched.OnExitV2 = func(depth int, output []byte, gasLeft tracing.Gas, err error, reverted bool) {
			if output, shown := f.exit(depth, output); shown {
				exit(depth, output, gasLeft, err, reverted)
			}
		}
	}
	if exit := hooks.OnExit; exit != nil {
		watched.OnExit = func(depth int, output []byte, gasUsed uint64, err error, reverted bool) {
			if output, shown := f.exit(depth, output); shown {
				exit(depth, output, gasUsed, err, reverted)
			}
		}
	}
	if log := hooks.OnLog; log != nil {
		watched.OnLog = func(l *types.Log) {
			if m.grow(logBytes + 2*len(l.Data)); !m.ended {
				log(l)
			}
		}
	}
	if name == keccakTracerName || name == erc7562TracerName {
		watched.OnOpcode = m.watchPreimages(hooks.OnOpcode)
	}
	return &watched
}

// frameMeter counts the frames that one tracer keeps.
type frameMeter struct {
	*meter
	hidden int // depth of the frame that is not shown, with all frames in it; 0 if there is none
}

// enter reports whether a frame is shown, and with which input. The outermost is always shown.
func (m *frameMeter) enter(depth int, input []byte) ([]byte, bool) {
	m.grow(frameBytes + 2*len(input))
	if !m.ended {
		return input, true
	}
	if m.hidden == 0 {
		m.hidden = depth
	}
	return nil, depth == 0
}

// exit reports whether the end of a frame is shown, and with which output.
func (m *frameMeter) exit(depth int, output []byte) ([]byte, bool) {
	m.grow(2 * len(output))
	if m.ended {
		output = nil
	}
	if m.hidden == 0 || depth < m.hidden {
		return output, true
	}
	if depth == m.hidden {
		m.hidden = 0
	}
	return nil, false
}
