package engine

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// member reads one member of an object. Its error says what was expected.
type member func(raw []byte) error

// readObject reads an object that has exactly the members of a table, each once. One
// that is null counts as missing, as the specification has it. what names the object.
func readObject(raw []byte, what string, members map[string]member) error {
	given, ok := jsonrpc.Object(raw)
	if !ok {
		return fmt.Errorf("%s: expected an object", what)
	}
	hasValue := make(map[string]bool, len(members)) // of the names that were given
	for given.Next() {
		name := string(given.Name())
		if _, twice := hasValue[name]; twice {
			return fmt.Errorf("%s.%.64s: given twice", what, name)
		}
		hasValue[name] = !jsonrpc.IsNull(given.Value())
		if !hasValue[name] {
			continue
		}
		read := members[name]
		if read == nil {
			return fmt.Errorf("%s.%.64s: not expected here", what, name)
		}
		if err := read(given.Value()); err != nil {
			return fmt.Errorf("%s.%s: %w", what, name, err)
		}
	}
	if err := given.Err(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !hasValue[name] {
			return fmt.Errorf("%s.%s: missing", what, name)
		}
	}
	return nil
}

// readArray reads an array, of which item reads each item.
func readArray(raw []byte, item func(i int, raw []byte) error) error {
	items, ok := jsonrpc.Array(raw)
	if !ok {
		return errors.New("expected an array")
	}
	for i := 0; items.Next(); i++ {
		if err := item(i, items.Value()); err != nil {
			return fmt.Errorf("[%d]: %w", i, err)
		}
	}
	return items.Err()
}

func text(raw []byte) (string, error) {
	value, ok := jsonrpc.String(raw)
	if !ok {
		return "", errors.New("expected a string")
	}
	return string(value), nil
}

// bytesOf reads data of any length.
func bytesOf(raw []byte) ([]byte, error) {
	value, ok := jsonrpc.String(raw)
	if !ok || len(value) < 2 || value[0] != '0' || value[1] != 'x' {
		return nil, errors.New("expected hexadecimal data that begins with 0x")
	}
	data := make([]byte, hex.DecodedLen(len(value)-2))
	if _, err := hex.Decode(data, value[2:]); err != nil {
		return nil, fmt.Errorf("expected hexadecimal data: %w", err)
	}
	return data, nil
}

// into reads data of exactly the length of dst.
func into(dst []byte) member {
	return func(raw []byte) error {
		if len(raw) != len(`"0x"`)+2*len(dst) {
			return fmt.Errorf("expected %d bytes", len(dst))
		}
		data, err := bytesOf(raw)
		copy(dst, data)
		return err
	}
}

func number(dst *uint64) member {
	return func(raw []byte) error {
		value, err := text(raw)
		if err == nil {
			*dst, err = hexutil.DecodeUint64(value)
		}
		return err
	}
}

// optionalNumber is number for what only some blocks have.
func optionalNumber(dst **uint64) member {
	*dst = new(uint64)
	return number(*dst)
}

func bigNumber(dst **big.Int) member {
	return func(raw []byte) error {
		value, err := text(raw)
		if err == nil {
			*dst, err = hexutil.DecodeBig(value)
		}
		return err
	}
}

func hashes(raw []byte) ([]common.Hash, error) {
	var all []common.Hash
	err := readArray(raw, func(_ int, raw []byte) error {
		var hash common.Hash
		err := into(hash[:])(raw)
		all = append(all, hash)
		return err
	})
	return all, err
}

// hashesAlone reads the arguments of a call whose only one is a list of hashes.
func hashesAlone(params []byte) ([]common.Hash, error) {
	var args [1][]byte
	if err := jsonrpc.Arguments(params, args[:], 1); err != nil {
		return nil, err
	}
	all, err := hashes(args[0])
	if err != nil {
		return nil, invalidParams(err.Error())
	}
	return all, nil
}
