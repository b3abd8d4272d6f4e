package parameter

import (
	"errors"
	"fmt"
	"math"

	"ashlar/chain"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// MaxTopics is the maximum number of positions of topics in a filter: a log has no more.
const MaxTopics = 4

// maxFilterValues is the maximum number of addresses and topics of a filter.
const maxFilterValues = 5_000

// LogFilter is the filter object of eth_getLogs.
type LogFilter struct {
	From, To  chain.BlockID
	Hash      *common.Hash // of the only block; excludes From and To
	Addresses []common.Address
	Topics    [][]common.Hash // by position; empty for any
}

// values returns the number of addresses and topics.
func (f *LogFilter) values() int {
	n := len(f.Addresses)
	for _, topics := range f.Topics {
		n += len(topics)
	}
	return n
}

// CheckSize returns an error if a filter has too many addresses and topics. By its words "filters" and "current limit is",
// those of another service, proxies know that they should divide the addresses among several calls.
func (f *LogFilter) CheckSize() error {
	if n := f.values(); n > maxFilterValues {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "too many addresses and topics: the query filters by %d, and the current limit is %d", n, maxFilterValues)
	}
	return nil
}

// Measured memory of an address or topic of a filter, as sent and sorted.
const (
	addressBytes = 48
	topicBytes   = 80
)

// Bytes returns the memory of the filter's addresses and topics.
func (f *LogFilter) Bytes() int {
	return addressBytes*len(f.Addresses) + topicBytes*(f.values()-len(f.Addresses))
}

var (
	errPendingLogs  = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "pending logs are not supported"}
	errInvalidRange = &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "invalid block range params"}
)

// NewBlocks returns the range of blocks, both included, in a filter for logs of new blocks. As
// they are new, a range that begins or ends with the latest block is unbounded there. A range
// from the latest block to another one makes no sense and is refused, as are safe and finalized
// blocks.
func (f *LogFilter) NewBlocks() (from, to uint64, err error) {
	if f.From.Tag == chain.Pending || f.To.Tag == chain.Pending {
		return 0, 0, errPendingLogs
	}
	from, fromLatest, fromOK := boundOfNew(f.From)
	to, toLatest, toOK := boundOfNew(f.To)
	if toLatest {
		to = math.MaxUint64
	}
	if !fromOK || !toOK || fromLatest && !toLatest || from > to {
		return 0, 0, errInvalidRange
	}
	return from, to, nil
}

// boundOfNew resolves one end of a range of blocks: a number, or the latest block.
func boundOfNew(id chain.BlockID) (number uint64, latest, ok bool) {
	switch id.Tag {
	case chain.NoTag:
		return id.Number, false, true
	case chain.Earliest:
		return 0, false, true
	case chain.Latest:
		return 0, true, true
	}
	return 0, false, false
}

var (
	errFilterObject  = errors.New("non-object value, want a filter object")
	errFilterBoth    = errors.New("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other")
	errFilterAddress = errors.New("invalid addresses in query")
	errFilterTopics  = errors.New("invalid topic(s)")
	errFilterMany    = errors.New("exceed max topics")
)

// ParseLogFilter decodes a filter object. As in geth, unknown members are ignored, and of
// several errors the one about blocks is returned, else the one about addresses.
func ParseLogFilter(raw []byte) (f LogFilter, err error) {
	members, ok := jsonrpc.Object(raw)
	if !ok {
		return f, errFilterObject
	}
	var from, to *chain.BlockID
	var errAddresses, errTopics error
	for members.Next() && err == nil {
		value := members.Value()
		switch name := members.Name(); {
		case name.Is("fromBlock"):
			err = jsonrpc.SetOptional(&from, value, ParseBlockNumber)
		case name.Is("toBlock"):
			err = jsonrpc.SetOptional(&to, value, ParseBlockNumber)
		case name.Is("blockHash"):
			err = jsonrpc.SetOptional(&f.Hash, value, ParseHash)
		case name.Is("address"):
			errAddresses = jsonrpc.Set(&f.Addresses, value, parseFilterAddresses)
		case name.Is("topics"):
			errTopics = jsonrpc.Set(&f.Topics, value, parseFilterTopics)
		}
	}
	switch {
	case err != nil:
		return f, err
	case f.Hash != nil && (from != nil || to != nil):
		return f, errFilterBoth
	case errAddresses != nil:
		return f, errAddresses
	}
	f.From, f.To = orLatest(from), orLatest(to)
	return f, errTopics
}

// orLatest returns the given block, or the latest.
func orLatest(id *chain.BlockID) chain.BlockID {
	if id == nil {
		return chain.BlockID{Tag: chain.Latest}
	}
	return *id
}

// parseFilterAddresses decodes an address or an array of them.
func parseFilterAddresses(raw []byte) ([]common.Address, error) {
	elements, ok := jsonrpc.Array(raw)
	if !ok {
		if _, ok := jsonrpc.String(raw); !ok {
			return nil, errFilterAddress
		}
		address, err := ParseAddress(raw)
		if err != nil {
			return nil, fmt.Errorf("invalid address: %w", err)
		}
		return []common.Address{address}, nil
	}
	var addresses []common.Address
	for i := 0; elements.Next(); i++ {
		address, err := ParseAddress(elements.Value())
		if errors.Is(err, errNonString) {
			return nil, fmt.Errorf("non-string address at index %d", i)
		}
		if err != nil {
			return nil, fmt.Errorf("invalid address at index %d: %w", i, err)
		}
		addresses = append(addresses, address)
	}
	return addresses, nil
}

// parseFilterTopics decodes the topics of a filter: for each position null, a
// topic or an array of topics.
func parseFilterTopics(raw []byte) ([][]common.Hash, error) {
	positions, ok := jsonrpc.Array(raw)
	if !ok {
		return nil, errFilterTopics
	}
	var topics [][]common.Hash
	for positions.Next() {
		if len(topics) == MaxTopics {
			return nil, errFilterMany
		}
		allowed, err := parsePosition(positions.Value())
		if err != nil {
			return nil, err
		}
		topics = append(topics, allowed)
	}
	return topics, nil
}

// parsePosition decodes the topics allowed at one position; empty means any.
func parsePosition(raw []byte) ([]common.Hash, error) {
	if jsonrpc.IsNull(raw) {
		return nil, nil
	}
	elements, ok := jsonrpc.Array(raw)
	if !ok {
		topic, err := parseTopic(raw)
		if err != nil {
			return nil, err
		}
		return []common.Hash{topic}, nil
	}
	var allowed []common.Hash
	for elements.Next() {
		if jsonrpc.IsNull(elements.Value()) {
			return nil, nil // any topic, regardless of the rest of the array
		}
		topic, err := parseTopic(elements.Value())
		if err != nil {
			return nil, err
		}
		allowed = append(allowed, topic)
	}
	return allowed, nil
}

func parseTopic(raw []byte) (common.Hash, error) {
	topic, err := ParseHash(raw)
	if errors.Is(err, errNonString) {
		err = errFilterTopics
	}
	return topic, err
}
