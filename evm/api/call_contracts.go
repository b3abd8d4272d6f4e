package api

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"ashlar/evm/execute"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

var errDelegates = errors.New("this call lets accounts run other code: expected no authorizationList")

// contractsCalled returns the called contract and those whose state the call overrides. It
// refuses calls that run code other than that on the chain, because such code could call
// and read any contract: code in an override or an authorization, or named by a proxy's
// storage.
func contractsCalled(params []byte) ([]common.Address, error) {
	args := parameter.Read(params, parameter.MaxArguments, 1)
	question := readCall(&args)
	switch {
	case args.Err != nil:
		return nil, args.Err
	case len(question.message.Authorizations) > 0:
		return nil, errDelegates
	case question.message.To == nil: // the data is init code
		return nil, nil
	}
	about := []common.Address{*question.message.To}
	for _, address := range slices.SortedFunc(maps.Keys(question.options.State), common.Address.Cmp) {
		account := question.options.State[address]
		if name := changesCode(&account); name != "" {
			return nil, fmt.Errorf("this call overrides the %s of %#x: expected overrides of balance and nonce alone", name, address)
		}
		about = append(about, address)
	}
	return about, nil
}

// changesCode returns the name of a member of an override through which the account may run
// other code, or "".
func changesCode(account *execute.AccountOverride) string {
	switch {
	case account.Code != nil:
		return "code"
	case account.MovePrecompileTo != nil:
		return "movePrecompileToAddress"
	case account.State != nil:
		return "state"
	case account.StateDiff != nil:
		return "stateDiff"
	}
	return ""
}
