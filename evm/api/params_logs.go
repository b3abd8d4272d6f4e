package api

import (
	"errors"
	"fmt"

	"ashlar/evm/query"
	"ashlar/jsonrpc"

	"github.com/ethereum/go-ethereum/common"
)

// logFilter is the filter object of eth_getLogs.
type logFilter struct {
	from, to  query.BlockID
	blockHash *common.Hash // excludes from and to
	addresses []common.Address
	topics    [][]common.Hash // by position; empty for any
}

// parameters returns the number of addresses and topics.
func (f *logFilter) parameters() int {
	n := len(f.addresses)
	for _, topics := range f.topics {
		n += len(topics)
	}
	return n
}

// checkParameters returns an error if a filter has too many addresses and topics.
func (f *logFilter) checkParameters() error {
	if n := f.parameters(); n > maxLogParameters {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "too many addresses and topics in the filter (max %d, got %d)", maxLogParameters, n)
	}
	return nil
}

// Measured memory of an address or topic of a filter: as sent and sorted, and in the index
// of subscribers.
const (
	addressBytes      = 48
	topicBytes        = 80
	indexAddressBytes = 128
	indexTopicBytes   = 144
)

// bytes returns the memory of the filter's addresses and topics.
func (f *logFilter) bytes() int {
	return addressBytes*len(f.addresses) + topicBytes*(f.parameters()-len(f.addresses))
}

// indexBytes returns the memory of the filter in the index of log subscribers.
func (f *logFilter) indexBytes() int {
	switch {
	case len(f.addresses) > 0:
		return indexAddressBytes * len(f.addresses)
	case f.hasFirstTopic():
		return indexTopicBytes * len(f.topics[0])
	}
	return 0
}

// hasFirstTopic reports whether the filter restricts the first topic.
func (f *logFilter) hasFirstTopic() bool { return len(f.topics) > 0 && len(f.topics[0]) > 0 }

var (
	errFilterObject  = errors.New("non-object value, want a filter object")
	errFilterBoth    = errors.New("cannot specify both BlockHash and FromBlock/ToBlock, choose one or the other")
	errFilterAddress = errors.New("invalid addresses in query")
	errFilterTopics  = errors.New("invalid topic(s)")
	errFilterMany    = errors.New("exceed max topics")
)

// parseLogFilter decodes a filter object. As in geth, unknown members are ignored, and of
// several errors the one about blocks is returned, else the one about addresses.
func parseLogFilter(raw []byte) (f logFilter, err error) {
	members, ok := jsonrpc.Object(raw)
	if !ok {
		return f, errFilterObject
	}
	var from, to *query.BlockID
	var errAddresses, errTopics error
	for members.Next() && err == nil {
		value := members.Value()
		switch name := members.Name(); {
		case name.Is("fromBlock"):
			err = jsonrpc.SetOptional(&from, value, parseBlockNumber)
		case name.Is("toBlock"):
			err = jsonrpc.SetOptional(&to, value, parseBlockNumber)
		case name.Is("blockHash"):
			err = jsonrpc.SetOptional(&f.blockHash, value, parseHash)
		case name.Is("address"):
			errAddresses = jsonrpc.Set(&f.addresses, value, parseFilterAddresses)
		case name.Is("topics"):
			errTopics = jsonrpc.Set(&f.topics, value, parseFilterTopics)
		}
	}
	switch {
	case err != nil:
		return f, err
	case f.blockHash != nil && (from != nil || to != nil):
		return f, errFilterBoth
	case errAddresses != nil:
		return f, errAddresses
	}
	f.from, f.to = orLatest(from), orLatest(to)
	return f, errTopics
}

// orLatest returns the given block, or the latest.
func orLatest(id *query.BlockID) query.BlockID {
	if id == nil {
		return query.BlockID{Tag: query.Latest}
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
		address, err := parseAddress(raw)
		if err != nil {
			return nil, fmt.Errorf("invalid address: %w", err)
		}
		return []common.Address{address}, nil
	}
	var addresses []common.Address
	for i := 0; elements.Next(); i++ {
		address, err := parseAddress(elements.Value())
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
		if len(topics) == maxLogPositions {
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
	topic, err := parseHash(raw)
	if errors.Is(err, errNonString) {
		err = errFilterTopics
	}
	return topic, err
}
