package api

import (
	"encoding/hex"
	"errors"
	"fmt"

	"ashlar/evm/execute"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// errNoOverride does not say that something is not supported: proxies would conclude that the node lacks the method.
var errNoOverride = errors.New("this method takes no such block override")

// parseStateOverrides decodes an object that maps addresses to changes of accounts.
func parseStateOverrides(raw []byte) (execute.StateOverrides, error) {
	return parseStates(raw, nil)
}

// parseSimulatedStates is parseStateOverrides for eth_simulateV1, where unknown members are errors.
func parseSimulatedStates(raw []byte) (execute.StateOverrides, error) {
	return parseStates(raw, errors.New("unknown state override"))
}

// parseStates decodes changes of accounts. unknown is the error about members that accounts do not have.
func parseStates(raw []byte, unknown error) (execute.StateOverrides, error) {
	overrides := make(execute.StateOverrides)
	err := parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		var address common.Address
		if err := parseName(name, address[:], "common.Address"); err != nil {
			return err
		}
		var account execute.AccountOverride // also for null: a named account is always overridden
		err := jsonrpc.Set(&account, value, func(raw []byte) (execute.AccountOverride, error) { return parseAccountOverride(raw, unknown) })
		overrides[address] = account
		return err
	})
	return overrides, err
}

func parseAccountOverride(raw []byte, unknown error) (account execute.AccountOverride, err error) {
	err = parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("nonce"):
			return jsonrpc.SetOptional(&account.Nonce, value, parameter.ParseUint64)
		case name.Is("code"):
			return jsonrpc.SetOptional(&account.Code, value, parameter.ParseBytes)
		case name.Is("balance"):
			return jsonrpc.Set(&account.Balance, value, parameter.ParseUint256)
		case name.Is("state"):
			return jsonrpc.Set(&account.State, value, parseSlots)
		case name.Is("stateDiff"):
			return jsonrpc.Set(&account.StateDiff, value, parseSlots)
		case name.Is("movePrecompileToAddress"):
			return jsonrpc.SetOptional(&account.MovePrecompileTo, value, parameter.ParseAddress)
		}
		return unknown
	})
	return account, err
}

// parseSlots decodes an object that maps slots to values. A null value is skipped.
func parseSlots(raw []byte) (map[common.Hash]common.Hash, error) {
	slots := make(map[common.Hash]common.Hash)
	err := parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		var key common.Hash
		if err := parseName(name, key[:], "common.Hash"); err != nil {
			return err
		}
		word, err := parameter.ParseHash(value)
		slots[key] = word
		return err
	})
	return slots, err
}

// parseName decodes a member's name, which must be hex of exactly the length of dst.
func parseName(name, dst []byte, kind string) error {
	switch {
	case !parameter.HasPrefix(name):
		return parameter.ErrPrefix
	case len(name) != 2+2*len(dst):
		return fmt.Errorf("hex string has length %d, want %d for %s", len(name)-2, 2*len(dst), kind)
	}
	if _, err := hex.Decode(dst, name[2:]); err != nil {
		return parameter.ErrSyntax
	}
	return nil
}

// parseBlockOverrides decodes the changes to the block that a call sees.
func parseBlockOverrides(raw []byte) (o execute.BlockOverrides, err error) {
	err = parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("number"):
			return jsonrpc.Set(&o.Number, value, parameter.ParseUint256)
		case name.Is("difficulty"):
			return jsonrpc.Set(&o.Difficulty, value, parameter.ParseUint256)
		case name.Is("time"):
			return jsonrpc.SetOptional(&o.Time, value, parameter.ParseUint64)
		case name.Is("gasLimit"):
			return jsonrpc.SetOptional(&o.GasLimit, value, parameter.ParseUint64)
		case name.Is("feeRecipient"):
			return jsonrpc.SetOptional(&o.FeeRecipient, value, parameter.ParseAddress)
		case name.Is("prevRandao"):
			return jsonrpc.SetOptional(&o.PrevRandao, value, parameter.ParseHash)
		case name.Is("baseFeePerGas"):
			return jsonrpc.Set(&o.BaseFeePerGas, value, parameter.ParseUint256)
		case name.Is("blobBaseFee"):
			return jsonrpc.Set(&o.BlobBaseFee, value, parameter.ParseUint256)
		case name.Is("beaconRoot"), name.Is("withdrawals"):
			if !jsonrpc.IsNull(value) {
				return errNoOverride
			}
		}
		return nil
	})
	return o, err
}
