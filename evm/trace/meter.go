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

// metered returns hooks that call the given ones and estimate the length of the result.
// When that exceeds the room after the length bytes already in the answer, end is called
// with the reason.
//
// Only frames and logs are counted: their input, output and data can be large but cost
// little gas. Everything else that tracers keep is bounded by the gas of the run.
func metered(hooks *tracing.Hooks, length int, room Room, end context.CancelCauseFunc) *tracing.Hooks {
	left := allowance{room: room, end: end}
	grow := func(bytes int) {
		if length += bytes; !left.ended {
			left.check(length)
		}
	}
	watched := *hooks
	if enter := hooks.OnEnter; enter != nil {
		watched.OnEnter = func(depth int, kind byte, from, to common.Address, input []byte, gas uint64, value *big.Int) {
			if grow(frameBytes + 2*len(input)); !left.ended {
				enter(depth, kind, from, to, input, gas, value)
			}
		}
	}
	if enter := hooks.OnEnterV2; enter != nil {
		watched.OnEnterV2 = func(depth int, kind byte, from, to common.Address, input []byte, gas tracing.Gas, value *big.Int) {
			if grow(frameBytes + 2*len(input)); !left.ended {
				enter(depth, kind, from, to, input, gas, value)
			}
		}
	}
	if exit := hooks.OnExitV2; exit != nil {
		watched.OnExitV2 = func(depth int, output []byte, gasLeft tracing.Gas, err error, reverted bool) {
			if grow(2 * len(output)); !left.ended {
				exit(depth, output, gasLeft, err, reverted)
			}
		}
	}
	if exit := hooks.OnExit; exit != nil {
		watched.OnExit = func(depth int, output []byte, gasUsed uint64, err error, reverted bool) {
			if grow(2 * len(output)); !left.ended {
				exit(depth, output, gasUsed, err, reverted)
			}
		}
	}
	if log := hooks.OnLog; log != nil {
		watched.OnLog = func(l *types.Log) {
			if grow(logBytes + 2*len(l.Data)); !left.ended {
				log(l)
			}
		}
	}
	return &watched
}
