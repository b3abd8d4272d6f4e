package parameter

import (
	"context"
	"errors"
	"fmt"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// Concerning returns the Concerns of a method whose contracts a function reads from the
// params.
func Concerning(read func(params []byte) ([]common.Address, error)) jsonrpc.Concerns {
	return func(_ context.Context, params []byte) (jsonrpc.Concern, error) {
		addresses, err := read(params)
		if known := (*jsonrpc.Error)(nil); errors.As(err, &known) {
			err = Unreadable(err)
		}
		if err != nil {
			return jsonrpc.Concern{}, err
		}
		return About(addresses), nil
	}
}

// About returns the concern of a call about contracts; without contracts, any contract.
func About(addresses []common.Address) jsonrpc.Concern {
	contracts := make([]jsonrpc.Contract, len(addresses))
	for i, address := range addresses {
		contracts[i] = jsonrpc.Contract(address[:])
	}
	return jsonrpc.About(contracts...)
}

// Unreadable is the error for a call whose params cannot be decoded, so that its contracts
// are unknown.
func Unreadable(err error) error { return fmt.Errorf("this call cannot be read: %w", err) }

// Emitters returns a function for [Concerning]: the contracts whose logs the filter in argument
// n selects.
func Emitters(n int) func(params []byte) ([]common.Address, error) {
	return func(params []byte) ([]common.Address, error) {
		args := Read(params, MaxArguments, n+1)
		filter := Decode(&args, n, ParseLogFilter)
		return filter.Addresses, args.Err
	}
}
