package parameter

import (
	"errors"
	"fmt"
	"math"

	"ashlar/chain"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

var (
	errBlockTag     = fmt.Errorf("%w", ErrPrefix) // a word in place of a block
	errBlockNumber  = errors.New("block number larger than int64")
	errBlockBoth    = errors.New("cannot specify both BlockHash and BlockNumber, choose one or the other")
	errBlockNeither = errors.New("must specify either BlockHash or BlockNumber")
)

// ParseBlockNumber decodes a block number, with digits in either case, or a tag.
func ParseBlockNumber(raw []byte) (chain.BlockID, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return chain.BlockID{}, errNonString
	}
	if tag := blockTag(text); tag != chain.NoTag {
		return chain.BlockID{Tag: tag}, nil
	}
	number, err := parseUint64Text(text)
	if errors.Is(err, ErrPrefix) && len(text) > 0 && !isDigit(text[0]) {
		err = errBlockTag
	}
	if err == nil && number > math.MaxInt64 {
		err = errBlockNumber
	}
	return chain.BlockID{Number: number}, err
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func blockTag(text []byte) chain.Tag {
	switch string(text) {
	case "latest":
		return chain.Latest
	case "earliest":
		return chain.Earliest
	case "pending":
		return chain.Pending
	case "safe":
		return chain.Safe
	case "finalized":
		return chain.Finalized
	}
	return chain.NoTag
}

// ParseBlock decodes a block number, a tag, a block hash or an EIP-1898 object.
func ParseBlock(raw []byte) (chain.BlockID, error) {
	if members, ok := jsonrpc.Object(raw); ok {
		return parseBlockObject(members)
	}
	const hashText = len(`"0x"`) + 2*common.HashLength
	if len(raw) == hashText {
		hash, err := ParseHash(raw)
		return chain.BlockID{Hash: &hash}, err
	}
	return ParseBlockNumber(raw)
}

func parseBlockObject(members jsonrpc.Cursor) (id chain.BlockID, err error) {
	var number *chain.BlockID
	for members.Next() && err == nil {
		value := members.Value()
		switch name := members.Name(); {
		case name.Is("blockNumber"):
			err = jsonrpc.SetOptional(&number, value, ParseBlockNumber)
		case name.Is("blockHash"):
			err = jsonrpc.SetOptional(&id.Hash, value, ParseHash)
		case name.Is("requireCanonical"):
			err = jsonrpc.Set(&id.RequireCanonical, value, ParseBool)
		}
	}
	switch {
	case err != nil:
		return id, err
	case number != nil && id.Hash != nil:
		return id, errBlockBoth
	case number != nil:
		id.Tag, id.Number = number.Tag, number.Number
	case id.Hash == nil:
		return id, errBlockNeither
	}
	return id, nil
}
