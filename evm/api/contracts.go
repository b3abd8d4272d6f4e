package api

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ashlar/events"
	"ashlar/evm/execute"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// Contracts tells which contracts a call of a method is about, without making the
// call. restricted is false for methods that are about none; a call of a restricted
// method about no contract is about all. err is why the call is about others than can
// be told; it goes on a sentence about the key's rules. A call that reads a filter is
// about what the filter was made for.
//
// A call is taken apart by the same functions as in its method, so that both take it
// for the same call.
func (a *API) Contracts(ctx context.Context, method string, params []byte) (about []common.Address, restricted bool, err error) {
	switch method {
	case "eth_getFilterLogs", "eth_getFilterChanges":
		f, _, err := a.publisher.polledArgument(ctx, params)
		if err != nil || f.kind != polledLogs {
			return nil, false, nil // the call fails, or gives no logs
		}
		return f.asked.addresses, true, nil
	}
	return contractsNamed(method, params)
}

// contractsNamed is Contracts for calls that name the contracts themselves.
func contractsNamed(method string, params []byte) (about []common.Address, restricted bool, err error) {
	read := contractReader(method)
	if read == nil || method == "eth_subscribe" && !subscribesLogs(params) {
		return nil, false, nil
	}
	about, err = read(params)
	if unreadable := (*jsonrpc.Error)(nil); errors.As(err, &unreadable) {
		err = fmt.Errorf("this call cannot be read: %w", err)
	}
	return about, true, err
}

// contractReader returns what finds the contracts in a method's params; nil for methods
// that are about none.
func contractReader(method string) func(params []byte) ([]common.Address, error) {
	switch method {
	case "eth_getBalance", "eth_getCode", "eth_getStorageAt", "eth_getTransactionCount", "eth_getProof":
		return contractRead
	case "eth_getStorageValues":
		return contractsRead
	case "eth_call", "eth_estimateGas", "eth_createAccessList":
		return contractsCalled
	case "eth_getLogs", "eth_newFilter":
		return func(params []byte) ([]common.Address, error) { return emitters(params, 0) }
	case "eth_subscribe":
		return func(params []byte) ([]common.Address, error) { return emitters(params, 1) }
	case "rollup_getEvents":
		return emitterOfEvents
	}
	return nil
}

// subscribesLogs says whether a subscription wants logs. Other kinds are about no contract.
func subscribesLogs(params []byte) bool {
	name, err := subscriptionName(params)
	return err == nil && name == "logs"
}

// contractRead is the contract whose state is asked for.
func contractRead(params []byte) ([]common.Address, error) {
	args := readArguments(params, maxArguments, 1)
	address := args.address(0)
	return []common.Address{address}, args.err
}

// contractsRead are the contracts whose slots eth_getStorageValues is asked for.
func contractsRead(params []byte) (about []common.Address, err error) {
	args := readArguments(params, maxArguments, 1)
	for _, account := range argument(&args, 0, parseAccountSlots) {
		about = append(about, account.address)
	}
	return about, args.err
}

// emitters are the contracts whose logs the filter in argument n asks for.
func emitters(params []byte, n int) ([]common.Address, error) {
	args := readArguments(params, maxArguments, n+1)
	filter := argument(&args, n, parseLogFilter)
	return filter.addresses, args.err
}

// emitterOfEvents is the contract whose events are asked for.
func emitterOfEvents(params []byte) ([]common.Address, error) {
	network := events.Network{ParseAddress: parseEventAddress, ParseWord: parseEventWord}
	emitter, err := network.Emitter(params)
	if emitter == nil {
		return nil, err
	}
	return []common.Address{common.BytesToAddress(emitter[:])}, err
}

var errDelegates = errors.New("this call lets accounts run other code: expected no authorizationList")

// contractsCalled are the contract that is called and those that the call sees
// otherwise than they are. They must do what they do on the chain: code from the call
// could call and read any contract. So could any code of the chain, as which a proxy
// runs whatever its storage names.
func contractsCalled(params []byte) ([]common.Address, error) {
	args := readArguments(params, maxArguments, 1)
	question := args.callQuestion()
	switch {
	case args.err != nil:
		return nil, args.err
	case len(question.message.Authorizations) > 0:
		return nil, errDelegates
	case question.message.To == nil: // it is code itself
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

// changesCode names a member of an override by which an account may run other code;
// none where it has none.
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
