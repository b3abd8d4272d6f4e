package api

import (
	"errors"
	"fmt"
	"math"

	"ashlar/evm/execute"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/holiman/uint256"
)

var (
	errNonObject = errors.New("non-object value, want an object")
	errNonArray  = errors.New("non-array value, want an array")
)

// parseObject calls member for each member of an object, including null ones. The error
// names the invalid member.
func parseObject(raw []byte, member func(name jsonrpc.Name, value []byte) error) error {
	members, ok := jsonrpc.Object(raw)
	if !ok {
		return errNonObject
	}
	for members.Next() {
		if err := member(members.Name(), members.Value()); err != nil {
			return fmt.Errorf("%s: %w", members.Name(), err)
		}
	}
	return members.Err()
}

// parseList decodes an array. The result is not nil even if the array is empty.
func parseList[T any](parse func([]byte) (T, error)) func([]byte) ([]T, error) {
	return parseFirst(math.MaxInt, parse)
}

// parseFirst is parseList, but keeps only the first elements. The others are decoded all the same,
// because an invalid one is an error. It is for lists that are refused if they are too long, and
// whose elements take far more memory than their JSON.
func parseFirst[T any](most int, parse func([]byte) (T, error)) func([]byte) ([]T, error) {
	return func(raw []byte) ([]T, error) {
		elements, ok := jsonrpc.Array(raw)
		if !ok {
			return nil, errNonArray
		}
		list := []T{}
		for i := 0; elements.Next(); i++ {
			value, err := parse(elements.Value())
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			if i < most {
				list = append(list, value)
			}
		}
		return list, elements.Err()
	}
}

// counted decodes the elements of all lists of one kind in a request, and counts them. It keeps as many as
// a request may have, because a call or a withdrawal of two bytes, {}, takes up to a hundred times as much
// memory. nil takes the place of the others: the request must be refused.
type counted[T any] struct {
	parse         func([]byte) (*T, error)
	most, decoded int
}

// next decodes an element.
func (c *counted[T]) next(raw []byte) (*T, error) {
	value, err := c.parse(raw)
	if c.decoded++; c.decoded > c.most {
		return nil, err
	}
	return value, err
}

// check refuses a request with more elements, which an error calls by a name, than it may have.
func (c *counted[T]) check(name string) error {
	if c.decoded > c.most {
		return errTooMany(name, c.decoded, c.most)
	}
	return nil
}

func errTooMany(name string, count, most int) error {
	return jsonrpc.Errorf(jsonrpc.CodeClientLimit, "too many %s: %d > %d", name, count, most)
}

// parseMessage decodes a call object. As in geth, unknown members are ignored, and input
// takes precedence over data.
func parseMessage(raw []byte) (*execute.Message, error) {
	m := new(execute.Message)
	var input *[]byte
	err := parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("from"):
			return jsonrpc.Set(&m.From, value, parameter.ParseAddress)
		case name.Is("to"):
			return jsonrpc.SetOptional(&m.To, value, parameter.ParseAddress)
		case name.Is("gas"):
			return jsonrpc.SetOptional(&m.Gas, value, parameter.ParseUint64)
		case name.Is("gasPrice"):
			return jsonrpc.Set(&m.GasPrice, value, parameter.ParseUint256)
		case name.Is("maxFeePerGas"):
			return jsonrpc.Set(&m.MaxFeePerGas, value, parameter.ParseUint256)
		case name.Is("maxPriorityFeePerGas"):
			return jsonrpc.Set(&m.MaxPriorityFeePerGas, value, parameter.ParseUint256)
		case name.Is("value"):
			return jsonrpc.Set(&m.Value, value, parameter.ParseUint256)
		case name.Is("nonce"):
			return jsonrpc.SetOptional(&m.Nonce, value, parameter.ParseUint64)
		case name.Is("data"):
			return jsonrpc.Set(&m.Data, value, parameter.ParseBytes)
		case name.Is("input"):
			return jsonrpc.SetOptional(&input, value, parameter.ParseBytes)
		case name.Is("chainId"):
			return jsonrpc.Set(&m.ChainID, value, parameter.ParseUint256)
		case name.Is("accessList"):
			return jsonrpc.Set((*[]types.AccessTuple)(&m.AccessList), value, parseList(parseAccessTuple))
		case name.Is("maxFeePerBlobGas"):
			return jsonrpc.Set(&m.MaxFeePerBlobGas, value, parameter.ParseUint256)
		case name.Is("blobVersionedHashes"):
			return jsonrpc.Set(&m.BlobHashes, value, parseList(parameter.ParseHash))
		case name.Is("authorizationList"):
			return jsonrpc.Set(&m.Authorizations, value, parseList(parseAuthorization))
		}
		return nil
	})
	if input != nil {
		m.Data = *input
	}
	return m, err
}

// parseAccessTuple decodes one entry of an access list.
func parseAccessTuple(raw []byte) (tuple types.AccessTuple, err error) {
	var address *common.Address
	err = parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("address"):
			return jsonrpc.SetOptional(&address, value, parameter.ParseAddress)
		case name.Is("storageKeys"):
			return jsonrpc.Set(&tuple.StorageKeys, value, parseList(parameter.ParseHash))
		}
		return nil
	})
	switch {
	case err != nil:
		return tuple, err
	case address == nil:
		return tuple, missingMember("address")
	case tuple.StorageKeys == nil:
		return tuple, missingMember("storageKeys")
	}
	tuple.Address = *address
	return tuple, nil
}

// parseAuthorization decodes one entry of an authorization list; all members are required.
func parseAuthorization(raw []byte) (authorization types.SetCodeAuthorization, err error) {
	var (
		chainID, r, s  *uint256.Int
		address        *common.Address
		nonce, yParity *uint64
	)
	err = parseObject(raw, func(name jsonrpc.Name, value []byte) error {
		switch {
		case name.Is("chainId"):
			return jsonrpc.Set(&chainID, value, parameter.ParseUint256)
		case name.Is("address"):
			return jsonrpc.SetOptional(&address, value, parameter.ParseAddress)
		case name.Is("nonce"):
			return jsonrpc.SetOptional(&nonce, value, parameter.ParseUint64)
		case name.Is("yParity"):
			return jsonrpc.SetOptional(&yParity, value, parseUint8)
		case name.Is("r"):
			return jsonrpc.Set(&r, value, parameter.ParseUint256)
		case name.Is("s"):
			return jsonrpc.Set(&s, value, parameter.ParseUint256)
		}
		return nil
	})
	switch {
	case err != nil:
		return authorization, err
	case chainID == nil:
		return authorization, missingMember("chainId")
	case address == nil:
		return authorization, missingMember("address")
	case nonce == nil:
		return authorization, missingMember("nonce")
	case yParity == nil:
		return authorization, missingMember("yParity")
	case r == nil:
		return authorization, missingMember("r")
	case s == nil:
		return authorization, missingMember("s")
	}
	return types.SetCodeAuthorization{
		ChainID: *chainID, Address: *address, Nonce: *nonce, V: uint8(*yParity), R: *r, S: *s,
	}, nil
}

// parseUint8 decodes a quantity of at most 8 bits.
func parseUint8(raw []byte) (uint64, error) {
	value, err := parameter.ParseUint64(raw)
	if err == nil && value > 0xff {
		err = errors.New("hex number > 8 bits")
	}
	return value, err
}

func missingMember(member string) error { return fmt.Errorf("missing required member %q", member) }
