package eth

import (
	"encoding/hex"
	"errors"
	"fmt"

	"ashlar/execute"

	"github.com/ethereum/go-ethereum/common"
)

var errNoOverride = errors.New("this block override is not supported for this method")

// parseStateOverrides decodes an object that has an account's changes under its address.
func parseStateOverrides(raw []byte) (execute.StateOverrides, error) {
	overrides := make(execute.StateOverrides)
	err := parseObject(raw, func(name, value []byte) error {
		var address common.Address
		if err := parseName(name, address[:], "common.Address"); err != nil {
			return err
		}
		account, err := parseAccountOverride(value)
		overrides[address] = account
		return err
	})
	return overrides, err
}

func parseAccountOverride(raw []byte) (account execute.AccountOverride, err error) {
	err = parseObject(raw, func(name, value []byte) error {
		switch string(name) {
		case "nonce":
			return setOptional(&account.Nonce, value, parseUint64)
		case "code":
			return setOptional(&account.Code, value, parseBytes)
		case "balance":
			return set(&account.Balance, value, parseUint256)
		case "state":
			return set(&account.State, value, parseSlots)
		case "stateDiff":
			return set(&account.StateDiff, value, parseSlots)
		case "movePrecompileToAddress":
			return setOptional(&account.MovePrecompileTo, value, parseAddress)
		}
		return nil
	})
	return account, err
}

// parseSlots decodes an object that has the value of a slot under its key.
func parseSlots(raw []byte) (map[common.Hash]common.Hash, error) {
	slots := make(map[common.Hash]common.Hash)
	err := parseObject(raw, func(name, value []byte) error {
		var key common.Hash
		if err := parseName(name, key[:], "common.Hash"); err != nil {
			return err
		}
		word, err := parseHash(value)
		slots[key] = word
		return err
	})
	return slots, err
}

// parseName decodes the name of a member, which is hex of exactly the length of dst.
func parseName(name, dst []byte, kind string) error {
	switch {
	case !hasPrefix(name):
		return errPrefix
	case len(name) != 2+2*len(dst):
		return fmt.Errorf("hex string has length %d, want %d for %s", len(name)-2, 2*len(dst), kind)
	}
	if _, err := hex.Decode(dst, name[2:]); err != nil {
		return errSyntax
	}
	return nil
}

// parseBlockOverrides decodes the members of a block that a call sees otherwise.
func parseBlockOverrides(raw []byte) (o execute.BlockOverrides, err error) {
	err = parseObject(raw, func(name, value []byte) error {
		switch string(name) {
		case "number":
			return set(&o.Number, value, parseUint256)
		case "difficulty":
			return set(&o.Difficulty, value, parseUint256)
		case "time":
			return setOptional(&o.Time, value, parseUint64)
		case "gasLimit":
			return setOptional(&o.GasLimit, value, parseUint64)
		case "feeRecipient":
			return setOptional(&o.FeeRecipient, value, parseAddress)
		case "prevRandao":
			return setOptional(&o.PrevRandao, value, parseHash)
		case "baseFeePerGas":
			return set(&o.BaseFeePerGas, value, parseUint256)
		case "blobBaseFee":
			return set(&o.BlobBaseFee, value, parseUint256)
		case "beaconRoot", "withdrawals":
			return errNoOverride
		}
		return nil
	})
	return o, err
}
