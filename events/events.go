// Package events answers rollup_getEvents and starknet_getEvents about a network
// of any family: what may be asked, how a range of blocks is found, how the answer
// goes on over pages, and what is said where it cannot. A family adds how its
// values are written and its [View].
//
// Answers are those of the Starknet specification. What that leaves open:
//   - Empty positions at the end of keys ask for nothing.
//   - Where from_block or to_block is not given it is the first block that is held,
//     or the latest.
//   - The range of blocks is that of the first page, whatever arrives later. A
//     token is good as long as the block that it points into is part of the chain,
//     and only where it could have come with a page of the same question.
//   - Nothing is pending, so a range that begins there is empty.
package events

import (
	"context"
	"errors"

	"ashlar/history/paging"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// Word is a value of a filter, or a hash: 32 bytes, shorter ones with zeros before them.
type Word = [32]byte

// Filter says which events are asked for.
type Filter struct {
	Address *Word // who emitted them; nil for any
	// Keys are, for each position, those that an event may have there; none
	// means any. The last position has some.
	Keys [][]Word
}

// View is a network as of one moment.
type View interface {
	// Span is the first block that is held and the last.
	Span() (first, last uint64)
	// BlockHash is the hash of a block of the span.
	BlockHash(ctx context.Context, number uint64) (Word, error)
	// FindBlock returns the number of the block with a hash, or false.
	FindBlock(ctx context.Context, hash Word) (number uint64, known bool, err error)
	// AppendEvents appends the events of a page, separated by commas, and
	// returns where the next page begins, as [paging.Walk] does. The range lies
	// within the span.
	AppendEvents(ctx context.Context, filter *Filter, r paging.Range, out []byte) ([]byte, *paging.Place, error)
}

// Network is what events are asked of.
type Network struct {
	// View returns the network as it is now; nil where it has no blocks.
	View func() (View, error)
	// ParseAddress and ParseWord read what a JSON string holds: an address, a
	// key or a hash.
	ParseAddress, ParseWord func(text []byte) (Word, error)
	// Address and Word describe what these two read.
	Address, Word *schema.Schema
}

// Describe describes a method that returns events. The caller adds its Concerns.
// example makes a filter.
func (n Network) Describe(name string, example func(context.Context) (any, error)) jsonrpc.Method {
	return jsonrpc.Method{
		Name: name, Summary: "Returns a page of the events that match a filter.", ByName: true,
		Params: []jsonrpc.Param{{
			Name: "filter", Summary: "Which events are returned, and how many.", Schema: n.filterSchema(), Required: true, Example: example,
		}},
		Result: jsonrpc.Result{Name: "events", Schema: n.pageSchema()},
		Errors: Errors(),
		Cost:   jsonrpc.Heavy(50), Handler: n.Handler(),
	}
}

// Handler answers the method: params are an object with a filter, or an array with that
// filter alone.
func (n Network) Handler() jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		request, err := n.parse(params)
		if err != nil {
			return out, err
		}
		view, err := n.View()
		if err != nil {
			return out, err
		}
		if view == nil {
			return out, NoBlocks()
		}
		return request.answer(ctx, view, out)
	}
}

// Emitter tells whose events a call of the method asks for: an address as ParseAddress
// reads it, nil for any.
func (n Network) Emitter(params []byte) (*Word, error) {
	request, err := n.parse(params)
	if err != nil {
		return nil, err
	}
	return request.filter.Address, nil
}

// answer appends a page.
func (q *request) answer(ctx context.Context, view View, out []byte) ([]byte, error) {
	r, err := q.resolve(ctx, view)
	if err != nil {
		return out, err
	}
	out = append(out, `{"events":[`...)
	var next *paging.Place
	if r.Begin.Block <= r.To {
		if out, next, err = view.AppendEvents(ctx, &q.filter, r, out); errors.Is(err, paging.ErrToken) {
			return out, errToken
		} else if err != nil {
			return out, err
		}
	}
	out = append(out, ']')
	if next != nil {
		hash, err := view.BlockHash(ctx, next.Block)
		if err != nil {
			return out, err
		}
		token := paging.Token{Filter: q.fingerprint(), Next: *next, BlockHash: hash, To: r.To}
		out = append(out, `,"continuation_token":`...)
		out = jsonrpc.AppendString(out, token.String())
	}
	return append(out, '}'), nil
}
