package execute

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/eth/tracers/logger"
)

// Accessed is what a call touches.
type Accessed struct {
	List    types.AccessList // sorted
	GasUsed uint64           // with the list
	Err     error            // what the call failed with, for its list is worth something all the same
}

// AccessList returns the access list with which a message costs the least gas.
// Its error is a [*CallError] or a failure.
func (e *Executor) AccessList(ctx context.Context, at At, message *Message, options CallOptions) (*Accessed, error) {
	var accessed *Accessed
	err := e.simulate(ctx, at, options, func(s *simulation) error {
		filled, err := s.withFees(message)
		if err == nil {
			accessed, err = s.accessList(filled)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return accessed, nil
}

// accessList runs a message until it touches only what its access list holds. Several runs can
// be needed: the list changes how much gas is left, and so what a contract does. If the list
// never settles, the time limit ends the search.
func (s *simulation) accessList(m *Message) (*Accessed, error) {
	known := s.known(m)
	before := logger.NewAccessListTracer(m.AccessList, known)
	for {
		list := before.AccessList()
		message, err := s.message(m.withList(list))
		if err != nil {
			return nil, err
		}
		tracer := logger.NewAccessListTracer(list, known)
		result, err := s.try(message, tracer.Hooks())
		if err != nil {
			return nil, &CallError{fmt.Errorf("failed to apply transaction: %w", err)}
		}
		if tracer.Equal(before) {
			return &Accessed{List: list, GasUsed: result.UsedGas, Err: result.Err}, nil
		}
		before = tracer
	}
}

// known are the addresses that every transaction may touch at the lower price
// without naming them.
func (s *simulation) known(m *Message) map[common.Address]struct{} {
	known := map[common.Address]struct{}{m.From: {}}
	switch {
	case m.To != nil:
		known[*m.To] = struct{}{}
	case m.Nonce != nil:
		known[crypto.CreateAddress(m.From, *m.Nonce)] = struct{}{}
	default:
		known[crypto.CreateAddress(m.From, s.state.GetNonce(m.From))] = struct{}{}
	}
	for _, address := range vm.ActivePrecompiles(s.rules) {
		known[address] = struct{}{}
	}
	for _, authorization := range m.Authorizations {
		if id := &authorization.ChainID; !id.IsZero() && id.CmpBig(s.executor.config.ChainID) != 0 {
			continue
		}
		if authority, err := authorization.Authority(); err == nil && authorization.Nonce+1 != 0 {
			known[authority] = struct{}{}
		}
	}
	return known
}
