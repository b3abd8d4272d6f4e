package api

import (
	"context"
	"errors"
	"strconv"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/events"
	"ashlar/evm/archive"
	"ashlar/evm/query"
	"ashlar/history/paging"
	"ashlar/jsonrpc"
	"ashlar/parameter"

	"github.com/ethereum/go-ethereum/common"
)

// eventMethods describes the method that reads logs page by page in the form of Starknet
// events: the address is the emitter, topics are keys, and data is split into words.
func (a *API) eventMethods() []jsonrpc.Method {
	network := a.eventNetwork()
	method := network.Describe("rollup_getEvents", a.example(func(s *sample) any {
		block := map[string]any{"block_number": s.block.Number}
		return map[string]any{"from_block": block, "to_block": block, "address": s.contract, "chunk_size": 10}
	}))
	method.Concerns = parameter.Concerning(func(params []byte) ([]common.Address, error) {
		emitters, err := network.Emitters(params)
		return addressesOf(emitters), err
	})
	return []jsonrpc.Method{method}
}

func addressesOf(words []events.Word) (addresses []common.Address) {
	for _, word := range words {
		addresses = append(addresses, common.BytesToAddress(word[:]))
	}
	return addresses
}

// eventNetwork describes this network to package events.
func (a *API) eventNetwork() events.Network {
	return events.Network{View: a.eventView, ParseAddress: parameter.ParseEventAddress, ParseWord: parameter.ParseEventWord, Address: eth.Address, Word: eth.Hash}
}

func (a *API) eventView() (events.View, error) {
	view, err := a.chain.View()
	if errors.Is(err, query.ErrUnknownBlock) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &eventView{api: a, View: view}, nil
}

// eventView adapts a view: logs are read as events. It implements [events.View].
type eventView struct {
	api *API
	*query.View
}

func (v *eventView) Span() (first, last uint64) {
	last = v.Head().Number
	if v.IsPending(last) {
		last--
	}
	return v.Extent().Blocks, last
}

// WithPending implements [events.View].
func (v *eventView) WithPending(ctx context.Context) (events.View, bool, error) {
	view, number, err := v.Resolve(ctx, chain.BlockID{Tag: chain.Pending})
	if err != nil {
		return nil, false, err
	}
	return &eventView{api: v.api, View: view}, view.IsPending(number), nil
}

func (v *eventView) BlockHash(ctx context.Context, number uint64) (events.Word, error) {
	hash, err := v.View.BlockHash(ctx, number)
	return events.Word(hash), removed(err)
}

func (v *eventView) FindBlock(ctx context.Context, hash events.Word) (number uint64, known bool, err error) {
	number, err = v.View.FindBlock(ctx, common.Hash(hash))
	if errors.Is(err, query.ErrUnknownHash) {
		return 0, false, nil
	}
	return number, err == nil, removed(err)
}

// removed returns the error of the specification for one about a block that is older than the
// first one of the history.
func removed(err error) error {
	if pruned := (*archive.Pruned)(nil); errors.As(err, &pruned) {
		return events.UnknownBlock(pruned.Error())
	}
	return err
}

func (v *eventView) AppendEvents(ctx context.Context, filter *events.Filter, r paging.Range, out []byte) ([]byte, *paging.Place, error) {
	if len(filter.Keys) > parameter.MaxTopics {
		return out, nil, nil // no log has that many topics
	}
	wanted := &query.Filter{Addresses: addressesOf(filter.Addresses)}
	for _, allowed := range filter.Keys {
		topics := make([]common.Hash, len(allowed))
		for i, key := range allowed {
			topics[i] = common.Hash(key)
		}
		wanted.Topics = append(wanted.Topics, topics)
	}
	room, begin := jsonrpc.RoomFor(ctx, out), len(out)
	next, err := v.LogPage(ctx, wanted, r, func(log *query.Log) error {
		hash, err := log.TransactionHash()
		if err != nil {
			return err
		}
		if len(out) > begin {
			out = append(out, ',')
		}
		out = appendEvent(out, log, v.IsPending(log.Block.Number), hash)
		return room.Check(len(out))
	})
	return out, next, removed(err)
}

// appendEvent appends a log as an event record. If the data's length is not a multiple of
// 32 bytes, the last word is shorter. A pending event has no hash and number of its block.
func appendEvent(out []byte, log *query.Log, pending bool, transaction common.Hash) []byte {
	out = append(out, '{')
	if !pending {
		out = append(out, `"block_hash":`...)
		out = appendHex(out, log.Block.Hash[:])
		out = append(out, `,"block_number":`...)
		out = strconv.AppendUint(out, log.Block.Number, 10)
		out = append(out, ',')
	}
	out = append(out, `"data":`...)
	out = appendWords(out, log.Data)
	out = append(out, `,"from_address":`...)
	out = appendHex(out, log.Address[:])
	out = append(out, `,"keys":`...)
	out = appendWords(out, log.Topics)
	out = append(out, `,"transaction_hash":`...)
	out = appendHex(out, transaction[:])
	return append(out, '}')
}

// appendWords appends bytes as an array of words.
func appendWords(out, data []byte) []byte {
	out = append(out, '[')
	for len(data) > 0 {
		n := min(len(data), common.HashLength)
		out = appendHex(out, data[:n])
		if data = data[n:]; len(data) > 0 {
			out = append(out, ',')
		}
	}
	return append(out, ']')
}
