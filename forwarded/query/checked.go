package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"ashlar/chain"
	"ashlar/forwarded"
	"ashlar/forwarded/check"
	"ashlar/upstream"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// IsChecked reports whether what nodes say about blocks, transactions, receipts and logs is checked.
func (c *Chain) IsChecked() bool { return c.checked }

// lie returns a failed check as an error that sets the node aside.
func lie(err error) error {
	if errors.Is(err, check.ErrUncheckable) {
		return fmt.Errorf("%w (%w)", err, upstream.Unfit("it is not checked here"))
	}
	if err == nil || errors.Is(err, upstream.ErrPruned) {
		return err
	}
	return fmt.Errorf("%w: %w", upstream.ErrLie, err)
}

// CheckHead checks the header of a block that a node has sent, and leaves no more of the block than is
// checked.
func CheckHead(b *forwarded.Block) error {
	header, _, err := check.DecodeHeader(b.JSON)
	if err == nil {
		b.JSON, err = check.HeadJSON(header, b.JSON)
	}
	return lie(err)
}

// HeaderCheck returns a check that an answer is null or a block that agrees with its hash, and
// passes another check as well, which may be nil.
func HeaderCheck(also func(json.RawMessage) error) func(json.RawMessage) error {
	return func(result json.RawMessage) error {
		if also != nil {
			if err := also(result); err != nil {
				return err
			}
		}
		if string(result) == "null" {
			return nil
		}
		_, _, err := check.DecodeHeader(result)
		return lie(err)
	}
}

// question asks for the block, with whole transactions or with their hashes.
func (b *Block) question(whole bool) Question {
	q := Question{Method: "eth_getBlockByNumber", Block: *b, History: upstream.Blocks, Fixed: true}
	name := b.ByNumber()
	if byHash, ok := b.ByHash(); ok {
		q.Method, name = "eth_getBlockByHash", byHash
	}
	q.Params = fmt.Sprintf("[%s,%t]", name, whole)
	return q
}

// CheckedBlock asks for a block and checks it.
func (c *Chain) CheckedBlock(ctx context.Context, view *forwarded.View, block Block) (b *check.Block, err error) {
	err = c.verify(ctx, view, blockClaim(block.question(true), BlockCheck(block), &b))
	return b, err
}

// CheckedBlockByHash asks for a block that need not exist, and checks it. It returns nil if
// the nodes do not have it.
func (c *Chain) CheckedBlockByHash(ctx context.Context, view *forwarded.View, hash common.Hash) (b *check.Block, err error) {
	q := Question{Method: "eth_getBlockByHash", Params: fmt.Sprintf(`["%#x",true]`, hash), History: upstream.Blocks, Fixed: true, Found: NumberOf}
	err = c.verify(ctx, view, blockClaim(q, HashCheck(hash), &b))
	return b, err
}

// blockClaim claims a block, which is nil if the answer is null.
func blockClaim(q Question, which func(json.RawMessage) error, b **check.Block) claim {
	q.Stored, q.Check = true, which
	return claim{Question: q, recompute: func(answer json.RawMessage) (err error) {
		if string(answer) == "null" {
			return nil
		}
		*b, err = check.DecodeBlock(answer)
		return lie(err)
	}}
}

// CheckCanonical returns chain.ErrNotCanonical unless a block is on the chain. If no block with its number was
// followed, only a node says which one is on the chain, and the answer to the call is unverified.
func (c *Chain) CheckCanonical(ctx context.Context, view *forwarded.View, b *check.Block) error {
	number := b.Header.Number.Uint64()
	if c.AwaitBlock(ctx, number) != nil {
		return chain.ErrNotCanonical
	}
	linked, err := Resolve(c.Present(), chain.BlockID{Number: number})
	if errors.Is(err, chain.ErrUnknownBlock) { // the head went back
		return chain.ErrNotCanonical
	}
	if err == nil {
		linked, err = c.Linked(ctx, linked)
	}
	if err != nil {
		return err
	}
	if linked.Hash == (common.Hash{}) {
		at, err := c.CheckedBlock(ctx, view, linked)
		if err != nil {
			return err
		}
		linked.Hash = at.Hash
	}
	if linked.Hash != b.Hash {
		return chain.ErrNotCanonical
	}
	return nil
}

// HashCheck returns a check that an answer is null or the block with a hash.
func HashCheck(hash common.Hash) func(json.RawMessage) error {
	return func(result json.RawMessage) error {
		got, err := forwarded.DecodeBlock(result)
		switch {
		case err != nil:
			return fmt.Errorf("%w: asked for block %s: %w", upstream.ErrLie, hash, err)
		case got != nil && got.Hash != hash:
			return fmt.Errorf("%w: asked for block %s, it sent %s", upstream.ErrLie, hash, got.Ref)
		}
		return nil
	}
}

// CheckedTransaction returns the checked block that has a transaction, and the transaction's index.
// A node says which block that is. If its answer is null, or names a block that is not there yet,
// the block is nil: that there is no such transaction cannot be checked.
func (c *Chain) CheckedTransaction(ctx context.Context, view *forwarded.View, hash common.Hash) (b *check.Block, index int, err error) {
	q := Question{
		Method: "eth_getTransactionByHash", Params: `["` + hash.Hex() + `"]`, History: upstream.Blocks, Fixed: true, Stored: true, Found: NumberOf,
		Check: func(result json.RawMessage) error {
			place, err := decodePlace(result)
			if err != nil || place == nil || view.IsFinal(place.Number) {
				return err // transactionAt checks it
			}
			return PlaceCheck(view)(result)
		},
	}
	said, ok, err := c.kept(ctx, view, &q)
	if err != nil {
		return nil, 0, err
	}
	if ok {
		return c.transactionAt(ctx, view, hash, said)
	}
	for call := c.call(view, &q); ; {
		answer, err := c.pool.Ask(ctx, call)
		if errors.Is(err, ErrOtherBranch) {
			return nil, 0, nil
		}
		if err != nil {
			return nil, 0, q.failed(view, err)
		}
		b, index, err := c.transactionAt(ctx, view, hash, answer.Result)
		if errors.Is(err, errPlace) {
			c.pool.Reject(&call, answer, err)
			continue
		}
		if err != nil || b == nil {
			return nil, 0, err
		}
		if followed, _, err := c.followed(ctx, b.Header.Number.Uint64()); err != nil || followed != b.Hash {
			return b, index, err // its block may be invented: the answer is not kept
		}
		c.keep(ctx, view, &q, answer.Result)
		return b, index, nil
	}
}

// errPlace means that a node named a wrong block for a transaction.
var errPlace = fmt.Errorf("%w", upstream.ErrLie)

// transactionAt returns the block that an answer of eth_getTransactionByHash names, and the index
// of the transaction.
func (c *Chain) transactionAt(ctx context.Context, view *forwarded.View, hash common.Hash, said json.RawMessage) (*check.Block, int, error) {
	place, err := decodePlace(said)
	if err != nil || place == nil {
		return nil, 0, err
	}
	if c.AwaitBlock(ctx, place.Number) != nil {
		return nil, 0, nil
	}
	linked, err := Resolve(c.Present(), chain.BlockID{Number: place.Number})
	if err == nil {
		linked, err = c.Linked(ctx, linked)
	}
	switch {
	case errors.Is(err, chain.ErrUnknownBlock): // the head went back
		return nil, 0, nil
	case err != nil:
		return nil, 0, err
	case linked.Hash == (common.Hash{}) || linked.Hash == place.Hash:
	case linked.Final:
		return nil, 0, fmt.Errorf("%w: transaction %s is said to be in %s, which is not on the chain", errPlace, hash, place)
	default: // the node is on another branch
		return nil, 0, nil
	}
	b, err := c.CheckedBlockByHash(ctx, view, place.Hash)
	if err != nil || b == nil {
		return nil, 0, err
	}
	index, ok := b.Find(hash)
	if !ok || b.Header.Number.Uint64() != place.Number {
		return nil, 0, fmt.Errorf("%w: transaction %s is not in block %s", errPlace, hash, place)
	}
	return b, index, nil
}

// decodePlace returns which block an answer of eth_getTransactionByHash names, nil if none.
func decodePlace(said json.RawMessage) (*chain.Ref, error) {
	var place *struct {
		Number *hexutil.Uint64 `json:"blockNumber"`
		Hash   *common.Hash    `json:"blockHash"`
	}
	if err := json.Unmarshal(said, &place); err != nil {
		return nil, fmt.Errorf("%w: decode a transaction: %w", upstream.ErrLie, err)
	}
	if place == nil || place.Hash == nil || place.Number == nil {
		return nil, nil
	}
	return &chain.Ref{Number: uint64(*place.Number), Hash: *place.Hash}, nil
}

// CheckedReceipts asks for the receipts of a block and checks them.
func (c *Chain) CheckedReceipts(ctx context.Context, view *forwarded.View, b *check.Block) (receipts []*check.Receipt, err error) {
	err = c.verify(ctx, view, receiptsClaim(view, b, func(all []*check.Receipt) error {
		receipts = all
		return nil
	}))
	return receipts, err
}

// receiptsClaim claims the receipts of a block, which are passed to take.
func receiptsClaim(view *forwarded.View, b *check.Block, take func([]*check.Receipt) error) claim {
	number := b.Header.Number.Uint64()
	q := Question{
		Method: "eth_getBlockReceipts", Params: fmt.Sprintf(`["%#x"]`, b.Hash), Numbered: fmt.Sprintf(`["%#x"]`, number),
		Block: Block{Number: number, Hash: b.Hash, Final: view.IsFinal(number)}, History: upstream.Blocks, Fixed: true, Stored: true, Check: ExistsCheck,
	}
	return claim{Question: q, recompute: func(answer json.RawMessage) error {
		receipts, err := b.DecodeReceipts(answer)
		if err != nil {
			return lie(err)
		}
		return take(receipts)
	}}
}
