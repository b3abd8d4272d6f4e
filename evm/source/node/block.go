package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	methodRaw      = "debug_getRawBlock"
	methodByHash   = "eth_getBlockByHash"
	methodByNumber = "eth_getBlockByNumber"
)

// Block fetches the block with a hash. It guarantees that the header has that hash.
func (c *Client) Block(ctx context.Context, hash common.Hash) (*types.Block, error) {
	blocks, err := c.blocks(ctx, []wanted{{param: hash, objects: methodByHash}})
	if err != nil {
		return nil, fmt.Errorf("block %#x: %w", hash, err)
	}
	if got := blocks[0].Hash(); got != hash {
		return nil, &InvalidError{What: fmt.Sprintf("block %#x", hash), Err: fmt.Errorf("the header's hash is %#x", got)}
	}
	return blocks[0], nil
}

// Blocks fetches count blocks of the node's chain by number, in ascending order. It returns
// fewer, but at least one, if the node does not return all. They may be of different
// branches if the node reorganizes meanwhile.
func (c *Client) Blocks(ctx context.Context, from uint64, count int) ([]*types.Block, error) {
	asked := make([]wanted, count)
	for i := range asked {
		asked[i] = wanted{param: hexutil.Uint64(from + uint64(i)), objects: methodByNumber}
	}
	blocks, err := c.blocks(ctx, asked)
	if err != nil {
		return nil, fmt.Errorf("blocks from %d on: %w", from, err)
	}
	for i, block := range blocks {
		if number := from + uint64(i); !block.Number().IsUint64() || block.NumberU64() != number {
			return nil, otherNumber(number, block.NumberU64())
		}
	}
	return blocks, nil
}

// Headers fetches exactly count headers of the node's chain by number, in ascending order.
// They may be of different branches if the node reorganizes meanwhile.
func (c *Client) Headers(ctx context.Context, from uint64, count int) ([]*types.Header, error) {
	answers := make([]*header, count)
	calls := make([]rpc.BatchElem, count)
	for i := range calls {
		calls[i] = rpc.BatchElem{Method: methodByNumber, Args: []any{hexutil.Uint64(from + uint64(i)), false}, Result: &answers[i]}
	}
	if err := c.batch(ctx, calls); err != nil {
		return nil, err
	}
	headers := make([]*types.Header, count)
	for i, call := range calls {
		number := from + uint64(i)
		switch answer := answers[i]; {
		case call.Error != nil:
			return nil, fmt.Errorf("header %d: %w", number, call.Error)
		case answer == nil:
			return nil, fmt.Errorf("header %d: %w", number, ErrNotFound)
		case !answer.Number.IsUint64() || answer.Number.Uint64() != number:
			return nil, otherNumber(number, answer.Number.Uint64())
		default:
			headers[i] = &answer.Header
		}
	}
	return headers, nil
}

// maxExtra is the maximum length of a header's extra data on any chain. In proof of authority
// it may list the signers, 20 bytes each.
const maxExtra = 32 << 10

// header is a header in JSON. The extra data is the only part of unlimited size, so headers
// with too much are rejected one by one as they are decoded.
type header struct{ types.Header }

// UnmarshalJSON implements [json.Unmarshaler].
func (h *header) UnmarshalJSON(answer []byte) error {
	if err := h.Header.UnmarshalJSON(answer); err != nil {
		return err
	}
	if err := checkExtra(&h.Header); err != nil {
		return err
	}
	return h.complete()
}

// complete makes the header from what its hash covers. A number that is missing before other fields,
// such as the gas of blobs, has the encoding of zero, so a node could leave it out. A missing hash has that
// of no hash, so a header without it is none.
func (h *header) complete() error {
	encoded, err := rlp.EncodeToBytes(&h.Header)
	whole := new(types.Header)
	if err == nil {
		err = rlp.DecodeBytes(encoded, whole)
	}
	if err != nil {
		return fmt.Errorf("a field before another one is missing: %w", err)
	}
	h.Header = *whole
	return nil
}

func checkExtra(h *types.Header) error {
	if len(h.Extra) > maxExtra {
		return &InvalidError{What: fmt.Sprintf("header %d", h.Number), Err: fmt.Errorf("it has %d bytes of extra data, expected at most %d", len(h.Extra), maxExtra)}
	}
	return nil
}

// wanted is a block to request.
type wanted struct {
	param   any    // number or hash
	objects string // method that returns the block as an object
}

// blocks fetches blocks, in raw form if the node supports it. It returns the blocks before the
// first one without an answer, or the reason if that is the very first.
func (c *Client) blocks(ctx context.Context, asked []wanted) ([]*types.Block, error) {
	if !c.unsupported.has(rawBlocks) {
		blocks, err := c.rawBlocks(ctx, asked)
		if !refuses(err) {
			return blocks, err
		}
		// The method may be unsupported or forbidden, or the node may not have the block: the
		// error does not tell which.
	}
	blocks, err := c.objects(ctx, asked)
	if err == nil {
		c.unsupported.add(rawBlocks)
	}
	return blocks, err
}

func (c *Client) rawBlocks(ctx context.Context, asked []wanted) ([]*types.Block, error) {
	return collect(ctx, c, asked, func(w wanted) (string, []any) { return methodRaw, []any{w.param} }, decodeRaw)
}

func (c *Client) objects(ctx context.Context, asked []wanted) ([]*types.Block, error) {
	return collect(ctx, c, asked, func(w wanted) (string, []any) { return w.objects, []any{w.param, true} },
		func(answer json.RawMessage) (*types.Block, error) { return c.rebuild(ctx, answer) })
}

// collect requests things and decodes them, up to the first one without an answer. It returns
// an error if that is the very first, or if an answer is invalid.
func collect[W, T any](ctx context.Context, c *Client, asked []W, ask func(W) (method string, args []any),
	decode func(answer json.RawMessage) (T, error)) ([]T, error) {
	answers := make([]json.RawMessage, len(asked))
	calls := make([]rpc.BatchElem, len(asked))
	for i := range asked {
		method, args := ask(asked[i])
		calls[i] = rpc.BatchElem{Method: method, Args: args, Result: &answers[i]}
	}
	if err := c.batch(ctx, calls); err != nil {
		return nil, err
	}
	var all []T
	for i, call := range calls {
		err := call.Error
		var one T
		if err == nil {
			one, err = decode(answers[i])
		}
		if invalid := (*InvalidError)(nil); err != nil && (i == 0 || errors.As(err, &invalid)) {
			return nil, err
		}
		if err != nil {
			break
		}
		all = append(all, one)
	}
	return all, nil
}

// decodeRaw decodes a block in its raw form. Geth has no bytes for a number above its head, which it may have
// wound back a moment ago.
func decodeRaw(answer json.RawMessage) (*types.Block, error) {
	var raw hexutil.Bytes
	if text := string(answer); text == "null" || text == `"0x"` {
		return nil, ErrNotFound
	}
	block := new(types.Block)
	err := json.Unmarshal(answer, &raw)
	if err == nil {
		err = rlp.DecodeBytes(raw, block)
	}
	if err != nil {
		return nil, &InvalidError{What: "a block's raw form", Err: err}
	}
	return block, checkExtra(block.Header())
}

// object is the part of a block in JSON that is not the header.
type object struct {
	Hash         *common.Hash         `json:"hash"`
	Transactions []*types.Transaction `json:"transactions"`
	Uncles       []common.Hash        `json:"uncles"`
	Withdrawals  []*types.Withdrawal  `json:"withdrawals"`
}

// rebuild assembles a block from its JSON, and fetches its uncles.
func (c *Client) rebuild(ctx context.Context, answer json.RawMessage) (*types.Block, error) {
	block, hashes, err := ParseObject(answer)
	if err != nil {
		return nil, err
	}
	uncles, err := c.uncles(ctx, block.Hash(), hashes)
	if err != nil {
		return nil, err
	}
	return block.WithBody(types.Body{Transactions: block.Transactions(), Uncles: uncles, Withdrawals: block.Withdrawals()}), nil
}

// ParseObject decodes a block as nodes answer it, with whole transactions. It returns the
// hashes of the uncles, which the answer does not hold.
func ParseObject(answer json.RawMessage) (block *types.Block, uncles []common.Hash, err error) {
	if string(answer) == "null" {
		return nil, nil, ErrNotFound
	}
	var head header
	var body object
	for _, into := range []any{&head, &body} {
		if err := json.Unmarshal(answer, into); err != nil {
			return nil, nil, &InvalidError{What: "a block as an object", Err: err}
		}
	}
	hash := head.Hash()
	if body.Hash == nil || *body.Hash != hash {
		return nil, nil, &InvalidError{What: fmt.Sprintf("block %d", head.Number), Err: fmt.Errorf("the header has the hash %#x, but the hash field is %v", hash, body.Hash)}
	}
	for i, tx := range body.Transactions {
		if tx == nil {
			return nil, nil, &InvalidError{What: fmt.Sprintf("block %d", head.Number), Err: fmt.Errorf("transaction %d is null", i)}
		}
	}
	for i, withdrawal := range body.Withdrawals {
		if withdrawal == nil {
			return nil, nil, &InvalidError{What: fmt.Sprintf("block %d", head.Number), Err: fmt.Errorf("withdrawal %d is null", i)}
		}
	}
	if len(body.Uncles) > maxUncles {
		return nil, nil, &InvalidError{What: fmt.Sprintf("block %d", head.Number), Err: fmt.Errorf("there are %d uncles, expected at most %d", len(body.Uncles), maxUncles)}
	}
	block = types.NewBlockWithHeader(&head.Header).WithBody(types.Body{Transactions: body.Transactions, Withdrawals: body.Withdrawals})
	return block, body.Uncles, nil
}

// ParseRaw decodes a block in its raw form.
func ParseRaw(answer json.RawMessage) (*types.Block, error) { return decodeRaw(answer) }

// ParseHeader decodes a header, or a block without its body.
func ParseHeader(answer json.RawMessage) (*types.Header, error) {
	if string(answer) == "null" {
		return nil, ErrNotFound
	}
	var head header
	if err := json.Unmarshal(answer, &head); err != nil {
		return nil, &InvalidError{What: "a header", Err: err}
	}
	return &head.Header, nil
}

// maxUncles is the maximum number of uncles of a block on any chain.
const maxUncles = 2

func (c *Client) uncles(ctx context.Context, block common.Hash, hashes []common.Hash) ([]*types.Header, error) {
	what := fmt.Sprintf("the uncles of block %#x", block)
	var uncles []*types.Header
	for i, hash := range hashes {
		var uncle *header
		if err := c.call(ctx, &uncle, "eth_getUncleByBlockHashAndIndex", block, hexutil.Uint(i)); err != nil {
			return nil, err
		}
		if uncle == nil {
			return nil, fmt.Errorf("%s: %w", what, ErrNotFound)
		}
		if got := uncle.Hash(); got != hash {
			return nil, &InvalidError{What: what, Err: fmt.Errorf("the hash of number %d is %#x, expected %#x", i, got, hash)}
		}
		uncles = append(uncles, &uncle.Header)
	}
	return uncles, nil
}
