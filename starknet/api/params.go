package api

import (
	"errors"

	"ashlar/events"
	"ashlar/jsonrpc"
	"ashlar/starknet"
)

// noArguments refuses arguments: params is missing, an empty array or an empty object.
func noArguments(params []byte) error {
	if members, isObject := jsonrpc.Object(params); isObject {
		if !members.Next() {
			return nil
		}
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "invalid params: %s: expected no members", members.Name())
	}
	return jsonrpc.Arguments(params, nil, 0)
}

// argument returns the one argument of a method, by its name or by its position.
func argument(params []byte, name string) ([]byte, error) {
	if members, isObject := jsonrpc.Object(params); isObject {
		var value []byte
		for members.Next() {
			if members.Name().Is(name) {
				value = members.Value()
			}
		}
		if value == nil {
			return nil, invalid(name, errors.New("missing"))
		}
		return value, nil
	}
	var args [1][]byte
	err := jsonrpc.Arguments(params, args[:], 1)
	return args[0], err
}

// invalid returns the error for an argument that cannot be decoded.
func invalid(name string, err error) error {
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "invalid params: %s: %s", name, err)
}

// parseFelt decodes a felt that is a JSON string.
func parseFelt(raw []byte) (starknet.Felt, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return starknet.Felt{}, errors.New("expected a string")
	}
	return starknet.ParseFelt(text)
}

// parseWord reads a felt for a filter.
func parseWord(text []byte) (events.Word, error) {
	felt, err := starknet.ParseFelt(text)
	return events.Word(felt), err
}
