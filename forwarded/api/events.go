package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"ashlar/chain"
	"ashlar/eth"
	"ashlar/events"
	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/history/paging"
	"ashlar/jsonrpc"
	"ashlar/parameter"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// eventMethods describes the method that reads logs page by page in the form of Starknet
// events: the address is the emitter, topics are keys, and data is split into words.
func (a *API) eventMethods() []jsonrpc.Method {
	network := events.Network{View: a.eventView, ParseAddress: parameter.ParseEventAddress, ParseWord: parameter.ParseEventWord, Address: eth.Address, Word: eth.Hash}
	method := network.Describe("rollup_getEvents", a.example(func(s *sample) any {
		block := map[string]any{"block_number": s.block}
		return map[string]any{"from_block": block, "to_block": block, "chunk_size": 10}
	}))
	method.Concerns = parameter.Concerning(func(params []byte) (addresses []common.Address, err error) {
		emitters, err := network.Emitters(params)
		for _, word := range emitters {
			addresses = append(addresses, common.BytesToAddress(word[:]))
		}
		return addresses, err
	})
	method.Cost = a.recomputing(method.Cost.Credits)
	return []jsonrpc.Method{method}
}

func (a *API) eventView() (events.View, error) {
	view := a.chain.Present()
	if view == nil {
		return nil, nil
	}
	return &eventView{a.chain, view}, nil
}

// eventView adapts a view: logs are read as events. It implements [events.View].
type eventView struct {
	chain *query.Chain
	view  *forwarded.View
}

func (v *eventView) Span() (first, last uint64) { return 0, v.view.Head().Number }

// WithPending implements [events.View]: there are no pending events.
func (v *eventView) WithPending(context.Context) (events.View, bool, error) { return v, false, nil }

func (v *eventView) BlockHash(ctx context.Context, number uint64) (events.Word, error) {
	block, err := query.Resolve(v.view, chain.BlockID{Number: number})
	if err == nil && v.chain.IsChecked() {
		block, err = v.chain.Linked(ctx, block)
	}
	if err != nil || block.Hash != (common.Hash{}) {
		return events.Word(block.Hash), err
	}
	b, err := v.find(ctx, query.Question{
		Method: "eth_getBlockByNumber", Params: "[" + block.ByNumber() + ",false]", Block: block, Check: query.BlockCheck(block),
	})
	if err != nil {
		return events.Word{}, err
	}
	return events.Word(b.Hash), nil
}

func (v *eventView) FindBlock(ctx context.Context, hash events.Word) (number uint64, known bool, err error) {
	if number, known = v.view.Number(common.Hash(hash)); known {
		return number, true, nil
	}
	b, err := v.find(ctx, query.Question{Method: "eth_getBlockByHash", Params: fmt.Sprintf(`["%#x",false]`, hash), Found: query.NumberOf, Check: query.HashCheck(common.Hash(hash))})
	if err != nil || b == nil || b.Number > v.view.Head().Number {
		return 0, false, err
	}
	canonical, err := v.BlockHash(ctx, b.Number)
	return b.Number, canonical == hash, err
}

// find asks for a block.
func (v *eventView) find(ctx context.Context, q query.Question) (*forwarded.Block, error) {
	q.History, q.Fixed = upstream.Blocks, true
	if v.chain.IsChecked() {
		q.Check = query.HeaderCheck(q.Check)
	}
	answer, err := v.chain.Ask(ctx, v.view, q)
	if err != nil {
		return nil, err
	}
	return forwarded.DecodeBlock(answer)
}

// errPageFull ends the search for logs.
var errPageFull = errors.New("the page is full")

// AppendEvents implements [events.View].
func (v *eventView) AppendEvents(ctx context.Context, filter *events.Filter, r paging.Range, out []byte) ([]byte, *paging.Place, error) {
	if len(filter.Keys) > parameter.MaxTopics {
		return out, nil, nil // no log has that many topics
	}
	wanted := &query.Filter{From: r.Begin.Block, To: r.To}
	for _, word := range filter.Addresses {
		wanted.Addresses = append(wanted.Addresses, common.BytesToAddress(word[:]))
	}
	for _, allowed := range filter.Keys {
		topics := make([]common.Hash, len(allowed))
		for i, key := range allowed {
			topics[i] = common.Hash(key)
		}
		wanted.Topics = append(wanted.Topics, topics)
	}
	var next *paging.Place
	room, count := jsonrpc.RoomFor(ctx, out), 0
	err := v.chain.Logs(ctx, v.view, wanted, math.MaxInt, func(log *query.Log) (err error) {
		at := paging.Place{Block: log.Block, Position: log.Index}
		if at.Block == r.Begin.Block && at.Position < r.Begin.Position {
			return nil
		}
		if count == 0 && r.Resumed && at != r.Begin {
			return paging.ErrToken
		}
		if count == r.Size {
			next = &at
			return errPageFull
		}
		if count++; count > 1 {
			out = append(out, ',')
		}
		if out, err = appendEvent(out, log); err != nil {
			return err
		}
		return room.Check(len(out))
	})
	if errors.Is(err, errPageFull) {
		err = nil
	}
	if err == nil && count == 0 && r.Resumed {
		err = paging.ErrToken
	}
	return out, next, err
}

// appendEvent appends a log as an event record. If the data's length is not a multiple of 32
// bytes, the last word is shorter.
func appendEvent(out []byte, log *query.Log) ([]byte, error) {
	var members struct {
		Data hexutil.Bytes `json:"data"`
	}
	if err := json.Unmarshal(log.JSON, &members); err != nil {
		return out, fmt.Errorf("decode the data of a log: %w", err)
	}
	out = append(append(out, `{"block_hash":"`...), log.BlockHash.Hex()...)
	out = strconv.AppendUint(append(out, `","block_number":`...), log.Block, 10)
	out = append(out, `,"data":[`...)
	for i := 0; i < len(members.Data); i += common.HashLength {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsonrpc.AppendString(out, hexutil.Encode(members.Data[i:min(i+common.HashLength, len(members.Data))]))
	}
	out = append(append(out, `],"from_address":"`...), hexutil.Encode(log.Address[:])...)
	out = append(out, `","keys":`...)
	out = jsonrpc.AppendArray(out, log.Topics, func(out []byte, topic common.Hash) []byte { return jsonrpc.AppendString(out, topic.Hex()) })
	out = append(append(out, `,"transaction_hash":"`...), log.Transaction.Hex()...)
	return append(out, `"}`...), nil
}
