// Package events answers rollup_getEvents and starknet_getEvents on networks of any
// family: it parses the filter, resolves the range of blocks, and makes pages and the
// tokens between them. A family adds the syntax of its values and a [View].
//
// Answers follow the Starknet specification, which leaves these points open:
//   - Empty positions at the end of keys match any event.
//   - from_block defaults to the first stored block, to_block to the latest.
//   - The first page fixes the range of blocks for all pages. A token is valid while the
//     block that it points into is part of the chain, and only for the filter that it
//     was made for.
//   - A range that names the pending block includes it if the network has one. Events of
//     the pending block have neither the hash nor the number of a block.
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

// Filter selects events.
type Filter struct {
	// Addresses are the emitters that match; none match any. There is one at most, unless
	// the network has AddressLists.
	Addresses []Word
	// Keys lists, for each position, the keys that match; an empty list matches any.
	// The list of the last position is not empty.
	Keys [][]Word
}

// View is a consistent view of a network.
type View interface {
	// Span returns the numbers of the first and the last stored block.
	Span() (first, last uint64)
	// BlockHash returns the hash of a block of the span.
	BlockHash(ctx context.Context, number uint64) (Word, error)
	// WithPending returns the view with the pending block, whose number is the next after
	// the span, or false if the network has none. The methods of the view accept its
	// number, and its hash is another one whenever it changes.
	WithPending(ctx context.Context) (View, bool, error)
	// FindBlock returns the number of the block with a hash, or false.
	FindBlock(ctx context.Context, hash Word) (number uint64, known bool, err error)
	// AppendEvents appends the events of a page, separated by commas, and
	// returns where the next page begins, as [paging.Walk] does. The range lies
	// within the span.
	AppendEvents(ctx context.Context, filter *Filter, r paging.Range, out []byte) ([]byte, *paging.Place, error)
}

// L1View is a View of a network whose blocks are accepted on layer 1 some time after they
// were made.
type L1View interface {
	// L1Accepted returns the number of the latest block of the span that is known to be
	// accepted, or false if it is not known of any.
	L1Accepted() (number uint64, known bool)
}

// Network is a network whose events can be queried.
type Network struct {
	// View returns the current view, or nil if the network has no blocks.
	View func() (View, error)
	// ParseAddress parses the text of an address, ParseWord that of a key or a hash.
	ParseAddress, ParseWord func(text []byte) (Word, error)
	// AddressLists accepts an array of addresses, as since 0.10 of the specification.
	AddressLists bool
	// L1Tag accepts the block tag l1_accepted, as since 0.9 of the specification.
	L1Tag bool
	// Address and Word describe the values that these two parse.
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
		pending := false
		if request.from.Kind == Pending || request.to.Kind == Pending {
			if view, pending, err = view.WithPending(ctx); err != nil {
				return out, err
			}
		}
		return request.answer(ctx, view, pending, out)
	}
}

// Emitters returns the addresses in the filter of a call, as ParseAddress returns them.
// There are none if the filter matches any.
func (n Network) Emitters(params []byte) ([]Word, error) {
	request, err := n.parse(params)
	if err != nil {
		return nil, err
	}
	return request.filter.Addresses, nil
}

// answer appends a page of a view, with its pending block if pending is set.
func (q *request) answer(ctx context.Context, view View, pending bool, out []byte) ([]byte, error) {
	r, err := q.resolve(ctx, view, pending)
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
