package api

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"

	"ashlar/forwarded/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// maxArguments is the maximum number of arguments of any method that is not passed on as it is.
const maxArguments = 4

// arguments are the positional arguments of a call. The first failure is recorded in err with
// its position.
type arguments struct {
	raw [maxArguments][]byte
	err error // an *jsonrpc.Error
}

// readArguments splits params into at most `most` arguments, of which the first `required`
// must be present.
func readArguments(params []byte, most, required int) (a arguments) {
	a.err = jsonrpc.Arguments(params, a.raw[:most], required)
	return a
}

// argument decodes argument n, unless an earlier one failed.
func argument[T any](a *arguments, n int, parse func([]byte) (T, error)) (value T) {
	if a.err != nil {
		return value
	}
	value, err := parse(a.raw[n])
	if whole := (*jsonrpc.Error)(nil); errors.As(err, &whole) {
		a.err = whole
	} else if err != nil {
		a.err = jsonrpc.InvalidArgument(n, err.Error())
	}
	return value
}

// block decodes a block parameter; if it is missing, it is the latest block.
func (a *arguments) block(n int, parse func([]byte) (query.BlockID, error)) query.BlockID {
	if a.raw[n] == nil {
		return query.BlockID{Tag: query.Latest}
	}
	return argument(a, n, parse)
}

// text returns the arguments as JSON, of which argument n is replaced by another one. Missing
// arguments at the end are left out.
func (a *arguments) text(n int, replaced string) string {
	last := n
	for i, raw := range a.raw {
		if raw != nil {
			last = max(last, i)
		}
	}
	var b strings.Builder
	for i := range last + 1 {
		b.WriteByte("[,"[min(i, 1)])
		switch {
		case i == n:
			b.WriteString(replaced)
		case a.raw[i] == nil:
			b.WriteString("null")
		default:
			b.Write(a.raw[i])
		}
	}
	b.WriteByte(']')
	return b.String()
}

// Why a value is invalid; geth's wording if it has one.
var (
	errNonString    = errors.New("non-string value, want a hex string")
	errPrefix       = errors.New("hex string without 0x prefix")
	errSyntax       = errors.New("invalid hex string")
	errEmpty        = errors.New("empty hex string")
	errNoDigits     = errors.New(`hex string "0x"`)
	errLeadingZero  = errors.New("hex number with leading zero digits")
	errOver64       = errors.New("hex number > 64 bits")
	errBlockNumber  = errors.New("block number larger than int64")
	errBlockBoth    = errors.New("cannot specify both BlockHash and BlockNumber, choose one or the other")
	errBlockNeither = errors.New("must specify either BlockHash or BlockNumber")
)

var tags = map[string]query.Tag{
	"latest": query.Latest, "earliest": query.Earliest, "pending": query.Pending, "safe": query.Safe, "finalized": query.Finalized,
}

// parseBlockNumber decodes a block number, with digits in either case, or a tag.
func parseBlockNumber(raw []byte) (query.BlockID, error) {
	text, ok := jsonrpc.String(raw)
	if !ok {
		return query.BlockID{}, errNonString
	}
	if tag, ok := tags[string(text)]; ok {
		return query.BlockID{Tag: tag}, nil
	}
	number, err := parseQuantity(string(text))
	if err == errPrefix && len(text) > 0 && (text[0] < '0' || text[0] > '9') {
		invalid := jsonrpc.InvalidArgument(0, err.Error())
		invalid.Data = `expected a block number such as "0x1b4", or latest, earliest, pending, safe or finalized`
		return query.BlockID{}, invalid
	}
	if err == nil && number > math.MaxInt64 {
		err = errBlockNumber
	}
	return query.BlockID{Number: number}, err
}

// parseQuantity decodes a number in hexadecimal.
func parseQuantity(text string) (uint64, error) {
	digits, ok := strings.CutPrefix(text, "0x")
	if !ok {
		digits, ok = strings.CutPrefix(text, "0X")
	}
	switch {
	case text == "":
		return 0, errEmpty
	case !ok:
		return 0, errPrefix
	case digits == "":
		return 0, errNoDigits
	case len(digits) > 1 && digits[0] == '0':
		return 0, errLeadingZero
	}
	number, err := strconv.ParseUint(digits, 16, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, errOver64
	} else if err != nil {
		return 0, errSyntax
	}
	return number, nil
}

// parseHash decodes 32 bytes.
func parseHash(raw []byte) (hash common.Hash, err error) {
	err = decodeFixed(raw, len(hash), &hash)
	return hash, err
}

// parseAddress decodes 20 bytes.
func parseAddress(raw []byte) (address common.Address, err error) {
	err = decodeFixed(raw, len(address), &address)
	return address, err
}

// decodeFixed decodes a hexadecimal text of a length in bytes.
func decodeFixed(raw []byte, length int, to any) error {
	if _, ok := jsonrpc.String(raw); !ok {
		return errNonString
	}
	if err := json.Unmarshal(raw, to); err != nil {
		var text string
		_ = json.Unmarshal(raw, &text)
		if _, err := hexutil.Decode(text); err != nil {
			return err
		}
		return errors.New("hex string has length " + strconv.Itoa(max(0, len(text)-2)) + ", want " + strconv.Itoa(2*length))
	}
	return nil
}

// parseBlock decodes a block number, a tag, a block hash or an EIP-1898 object.
func parseBlock(raw []byte) (query.BlockID, error) {
	if members, ok := jsonrpc.Object(raw); ok {
		return parseBlockObject(members, raw)
	}
	const hashText = len(`"0x"`) + 2*common.HashLength
	if len(raw) == hashText {
		hash, err := parseHash(raw)
		return query.BlockID{Hash: &hash, Text: raw}, err
	}
	return parseBlockNumber(raw)
}

func parseBlockObject(members jsonrpc.Cursor, raw []byte) (id query.BlockID, err error) {
	var number *query.BlockID
	for members.Next() && err == nil {
		switch name := members.Name(); {
		case name.Is("blockNumber"):
			err = jsonrpc.SetOptional(&number, members.Value(), parseBlockNumber)
		case name.Is("blockHash"):
			err = jsonrpc.SetOptional(&id.Hash, members.Value(), parseHash)
		}
	}
	switch {
	case err != nil:
		return id, err
	case number != nil && id.Hash != nil:
		return id, errBlockBoth
	case number != nil:
		return *number, nil
	case id.Hash == nil:
		return id, errBlockNeither
	}
	id.Text = raw
	return id, nil
}

// parseFilter decodes a filter object. from and to are the ends of its range.
func parseFilter(raw []byte) (f logFilter, err error) {
	members, ok := jsonrpc.Object(raw)
	if !ok {
		return f, errors.New("non-object value, want a filter object")
	}
	var from, to *query.BlockID
	for members.Next() && err == nil {
		value := members.Value()
		switch name := members.Name(); {
		case name.Is("fromBlock"):
			err = jsonrpc.SetOptional(&from, value, parseBlockNumber)
		case name.Is("toBlock"):
			err = jsonrpc.SetOptional(&to, value, parseBlockNumber)
		case name.Is("blockHash"):
			err = jsonrpc.SetOptional(&f.Hash, value, parseHash)
		case name.Is("address"):
			err = jsonrpc.Set(&f.Addresses, value, parseAddresses)
		case name.Is("topics"):
			err = jsonrpc.Set(&f.Topics, value, parseTopics)
		}
	}
	if err == nil && f.Hash != nil && (from != nil || to != nil) {
		err = errors.New("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other")
	}
	f.from, f.to = query.BlockID{Tag: query.Latest}, query.BlockID{Tag: query.Latest}
	if from != nil {
		f.from = *from
	}
	if to != nil {
		f.to = *to
	}
	return f, err
}

// parseAddresses decodes an address or an array of them.
func parseAddresses(raw []byte) ([]common.Address, error) {
	elements, ok := jsonrpc.Array(raw)
	if !ok {
		address, err := parseAddress(raw)
		return []common.Address{address}, err
	}
	var all []common.Address
	for elements.Next() {
		address, err := parseAddress(elements.Value())
		if err != nil {
			return nil, err
		}
		all = append(all, address)
	}
	return all, nil
}

var (
	errTopics     = errors.New("invalid topic(s)")
	errManyTopics = errors.New("exceed max topics")
)

// parseTopics decodes, for each position, null, a topic or an array of topics.
func parseTopics(raw []byte) (topics [][]common.Hash, err error) {
	positions, ok := jsonrpc.Array(raw)
	if !ok {
		return nil, errTopics
	}
	for positions.Next() {
		if len(topics) == maxTopics {
			return nil, errManyTopics
		}
		var allowed []common.Hash
		if value := positions.Value(); !jsonrpc.IsNull(value) {
			if allowed, err = parsePosition(value); err != nil {
				return nil, err
			}
		}
		topics = append(topics, allowed)
	}
	return topics, nil
}

// parsePosition decodes the topics allowed at one position; none means any.
func parsePosition(raw []byte) (allowed []common.Hash, err error) {
	elements, ok := jsonrpc.Array(raw)
	if !ok {
		topic, err := parseHash(raw)
		return []common.Hash{topic}, err
	}
	for elements.Next() {
		if jsonrpc.IsNull(elements.Value()) {
			return nil, nil
		}
		topic, err := parseHash(elements.Value())
		if err != nil {
			return nil, err
		}
		allowed = append(allowed, topic)
	}
	return allowed, nil
}
