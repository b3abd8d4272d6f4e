package events

import (
	"errors"
	"fmt"
	"strconv"

	"ashlar/history/paging"
	"ashlar/jsonrpc"
)

// What a filter may hold.
const (
	maxChunkSize = 1024 // events of a page
	maxPositions = 16   // of keys
	maxKeys      = 1024 // of all positions; also addresses
)

// request is a decoded filter.
type request struct {
	filter    Filter
	from, to  BlockID
	token     *paging.Token // nil for the first page
	chunkSize int
}

var (
	errParams        = errors.New(`expected {"filter": {…}} or [{…}]`)
	errNamedInList   = errors.New(`expected {"filter": {…}} or [{…}], not [{"filter": {…}}]`)
	errNonString     = errors.New("expected a string")
	errNonArray      = errors.New("expected an array")
	errMixedKeys     = errors.New("expected arrays of strings, or strings alone")
	errNonInteger    = errors.New("expected an integer that is not negative")
	errNonBlock      = errors.New(`expected "latest", "pending", {"block_number": …} or {"block_hash": …}`)
	errBlockBoth     = errors.New("expected either block_number or block_hash")
	errManyAddresses = fmt.Errorf("expected at most %d addresses", maxKeys)
	errNoChunkSize   = errors.New("missing")
)

// parse decodes the params of a call. Its errors are [*jsonrpc.Error] values.
func (n Network) parse(params []byte) (*request, error) {
	raw, ok := filterOf(params)
	members, isObject := jsonrpc.Object(raw)
	if !ok || !isObject {
		return nil, invalid("params", errParams)
	}
	q := new(request)
	for members.Next() {
		if members.Name().Is("filter") {
			return nil, invalid("params", errNamedInList)
		}
		if err := n.member(q, members.Name(), members.Value()); err != nil {
			return nil, err
		}
	}
	if q.chunkSize == 0 {
		return nil, invalid("chunk_size", errNoChunkSize)
	}
	return q, nil
}

// filterOf returns the filter in params, which is given by name or by position.
func filterOf(params []byte) (filter []byte, ok bool) {
	if elements, isArray := jsonrpc.Array(params); isArray {
		if !elements.Next() {
			return nil, false
		}
		filter = elements.Value()
		return filter, !elements.Next()
	}
	members, _ := jsonrpc.Object(params)
	for members.Next() {
		if members.Name().Is("filter") {
			filter = members.Value()
		}
	}
	return filter, filter != nil
}

// member decodes one member of a filter. Unknown members are ignored.
func (n Network) member(q *request, name jsonrpc.Name, value []byte) (err error) {
	switch {
	case name.Is("from_block"):
		err = jsonrpc.Set(&q.from, value, n.parseBlock)
	case name.Is("to_block"):
		err = jsonrpc.Set(&q.to, value, n.parseBlock)
	case name.Is("address"):
		err = jsonrpc.Set(&q.filter.Addresses, value, n.parseAddresses)
	case name.Is("keys"):
		err = jsonrpc.Set(&q.filter.Keys, value, n.parseKeys)
	case name.Is("continuation_token"):
		err = jsonrpc.Set(&q.token, value, parseToken)
	case name.Is("chunk_size"):
		err = jsonrpc.Set(&q.chunkSize, value, parseChunkSize)
	}
	if err != nil {
		return invalid(string(name), err)
	}
	return nil
}

// invalid returns the error for a member that cannot be decoded.
func invalid(name string, err error) error {
	if known := (*jsonrpc.Error)(nil); errors.As(err, &known) {
		return known
	}
	return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "invalid params: %s: %s", name, err)
}

func (n Network) parseBlock(raw []byte) (BlockID, error) {
	return ParseBlock(raw, n.ParseWord, n.L1Tag)
}

// ParseBlock reads a block parameter, and the hash in it with parseHash. l1Tag accepts the
// tag l1_accepted.
func ParseBlock(raw []byte, parseHash func(text []byte) (Word, error), l1Tag bool) (id BlockID, err error) {
	if tag, ok := jsonrpc.String(raw); ok {
		switch string(tag) {
		case "latest":
			return BlockID{Kind: Latest}, nil
		case "pending", "pre_confirmed": // the second since 0.9 of the specification
			return BlockID{Kind: Pending}, nil
		case "l1_accepted":
			if l1Tag {
				return BlockID{Kind: L1Accepted}, nil
			}
		}
		return id, errNonBlock
	}
	members, ok := jsonrpc.Object(raw)
	if !ok {
		return id, errNonBlock
	}
	var number *uint64
	var hash *Word
	for members.Next() {
		switch name := members.Name(); {
		case name.Is("block_number"):
			err = jsonrpc.SetOptional(&number, members.Value(), parseInteger)
		case name.Is("block_hash"):
			err = jsonrpc.SetOptional(&hash, members.Value(), parsing(parseHash))
		}
		if err != nil {
			return id, fmt.Errorf("%s: %w", members.Name(), err)
		}
	}
	switch {
	case number != nil && hash != nil:
		return id, errBlockBoth
	case number != nil:
		return BlockID{Kind: ByNumber, Number: *number}, nil
	case hash != nil:
		return BlockID{Kind: ByHash, Hash: *hash}, nil
	}
	return id, errNonBlock
}

// parsing makes what reads a JSON string of what reads the text in it.
func parsing(parse func(text []byte) (Word, error)) func(raw []byte) (Word, error) {
	return func(raw []byte) (Word, error) {
		text, ok := jsonrpc.String(raw)
		if !ok {
			return Word{}, errNonString
		}
		return parse(text)
	}
}

// parseInteger decodes an integer. More than 64 bits count as the greatest integer of 64
// bits, which exceeds every block number and page size.
func parseInteger(raw []byte) (uint64, error) {
	value, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, errNonInteger
	}
	return value, nil
}

func parseChunkSize(raw []byte) (int, error) {
	size, err := parseInteger(raw)
	switch {
	case err != nil:
		return 0, err
	case size == 0:
		return 0, errors.New("expected at least 1")
	case size > maxChunkSize:
		return 0, errPageSize
	}
	return int(size), nil
}

// parseToken decodes a token. An empty string means none, because many clients send it.
func parseToken(raw []byte) (*paging.Token, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return nil, errNonString
	}
	if len(text) == 0 {
		return nil, nil
	}
	token, err := paging.ParseToken(text)
	if err != nil {
		return nil, errToken
	}
	return &token, nil
}

// parseAddresses decodes an address, or an array of them if the network takes one.
func (n Network) parseAddresses(raw []byte) ([]Word, error) {
	elements, isArray := jsonrpc.Array(raw)
	if !isArray || !n.AddressLists {
		address, err := parsing(n.ParseAddress)(raw)
		return []Word{address}, err
	}
	var addresses []Word
	for at := 0; elements.Next(); at++ {
		if at == maxKeys {
			return nil, errManyAddresses
		}
		address, err := parsing(n.ParseAddress)(elements.Value())
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", at, err)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// parseKeys decodes the keys of each position. Plain strings are keys of the first.
func (n Network) parseKeys(raw []byte) ([][]Word, error) {
	elements, ok := jsonrpc.Array(raw)
	if !ok {
		return nil, errNonArray
	}
	var keys [][]Word
	var flat []Word
	count := 0
	for at := 0; elements.Next(); at++ {
		if _, isString := jsonrpc.String(elements.Value()); isString {
			key, err := parsing(n.ParseWord)(elements.Value())
			if err != nil {
				return nil, fmt.Errorf("element %d: %w", at, err)
			}
			flat = append(flat, key)
			continue
		}
		allowed, err := n.parsePosition(elements.Value())
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", at, err)
		}
		keys = append(keys, allowed)
		count += len(allowed)
	}
	if len(flat) > 0 {
		if len(keys) > 0 {
			return nil, errMixedKeys
		}
		keys, count = [][]Word{flat}, len(flat)
	}
	if len(keys) > maxPositions || count > maxKeys {
		return nil, errTooManyKeys
	}
	for len(keys) > 0 && len(keys[len(keys)-1]) == 0 {
		keys = keys[:len(keys)-1]
	}
	return keys, nil
}

// parsePosition decodes the keys of one position; none match any key.
func (n Network) parsePosition(raw []byte) ([]Word, error) {
	if jsonrpc.IsNull(raw) {
		return nil, nil
	}
	elements, ok := jsonrpc.Array(raw)
	if !ok {
		return nil, errMixedKeys
	}
	var allowed []Word
	for elements.Next() {
		key, err := parsing(n.ParseWord)(elements.Value())
		if err != nil {
			return nil, err
		}
		allowed = append(allowed, key)
	}
	return allowed, nil
}
