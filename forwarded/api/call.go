package api

import (
	"context"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/forwarded/query"
	"ashlar/jsonrpc"
	"ashlar/parameter"
)

// call is a call of a method, with what its handler has decoded of the arguments, and the view as of which it is answered.
type call[T any] struct {
	*parameter.Arguments
	about T
	view  *forwarded.View
}

// asOfNow returns the handler of a method that is answered as of the present view. It takes up to most arguments, of which as many as
// required must be given, and decodes them with read.
func asOfNow[T any](a *API, most, required int, read func(*parameter.Arguments) T, answer func(context.Context, *call[T], []byte) ([]byte, error)) jsonrpc.Handler {
	return func(ctx context.Context, params, out []byte) ([]byte, error) {
		args := parameter.Read(params, most, required)
		about := read(&args)
		if args.Err != nil {
			return out, args.Err
		}
		view, err := a.chain.View(ctx)
		if err != nil {
			return out, err
		}
		return answer(ctx, &call[T]{&args, about, view}, out)
	}
}

// argument returns a function that decodes the argument at a position.
func argument[T any](decode func(args *parameter.Arguments, n int) T, n int) func(*parameter.Arguments) T {
	return func(args *parameter.Arguments) T { return decode(args, n) }
}

// noArgument is for methods without arguments.
func noArgument(*parameter.Arguments) struct{} { return struct{}{} }

// blockCall is a call about a block.
type blockCall = call[chain.BlockID]

// resolve returns the block of a call that argument n names. Nodes are asked about a hash that the view does not have in the form in
// which the client sent it.
func resolve(c *blockCall, n int) (query.Block, error) {
	block, err := query.Resolve(c.view, c.about)
	if c.about.Hash != nil && block.Named != nil {
		block.Named = c.Raw(n)
	}
	return block, err
}
