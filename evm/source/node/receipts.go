package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

const (
	methodRawReceipts    = "debug_getRawReceipts"
	methodReceipts       = "eth_getBlockReceipts"
	methodRawAccessLists = "debug_getRawBlockAccessList"
)

// Receipts fetches the receipts of blocks by their hashes, with their blooms. It returns those
// of fewer blocks, but of at least one, if the node does not return all. None of them is
// verified.
func (c *Client) Receipts(ctx context.Context, blocks []common.Hash) ([]types.Receipts, error) {
	if !c.unsupported.has(rawReceipts) {
		receipts, err := collect(ctx, c, blocks, byHash(methodRawReceipts), decodeRawReceipts)
		if !refuses(err) {
			return receipts, err
		}
	}
	receipts, err := collect(ctx, c, blocks, byHash(methodReceipts), ParseReceipts)
	if err == nil {
		c.unsupported.add(rawReceipts)
	}
	return receipts, err
}

// AccessLists fetches the encoded access lists of blocks, like [Client.Receipts].
func (c *Client) AccessLists(ctx context.Context, blocks []common.Hash) ([][]byte, error) {
	return collect(ctx, c, blocks, byHash(methodRawAccessLists), func(answer json.RawMessage) ([]byte, error) {
		var list hexutil.Bytes
		if string(answer) == "null" {
			return nil, ErrNotFound
		}
		if err := json.Unmarshal(answer, &list); err != nil {
			return nil, &InvalidError{What: "an access list", Err: err}
		}
		return list, nil
	})
}

func byHash(method string) func(block common.Hash) (string, []any) {
	return func(block common.Hash) (string, []any) { return method, []any{block} }
}

func decodeRawReceipts(answer json.RawMessage) (types.Receipts, error) {
	if string(answer) == "null" {
		return nil, ErrNotFound
	}
	var raw []hexutil.Bytes
	if err := json.Unmarshal(answer, &raw); err != nil {
		return nil, &InvalidError{What: "the raw receipts of a block", Err: err}
	}
	receipts := make(types.Receipts, len(raw))
	for i, encoded := range raw {
		receipts[i] = new(types.Receipt)
		if err := receipts[i].UnmarshalBinary(encoded); err != nil {
			return nil, &InvalidError{What: "the raw receipts of a block", Err: fmt.Errorf("receipt %d: %w", i, err)}
		}
	}
	return receipts, nil
}

// ParseReceipts decodes the receipts of a block as objects. What their root does not cover, such as
// the used gas, may be wrong.
func ParseReceipts(answer json.RawMessage) (types.Receipts, error) {
	if string(answer) == "null" {
		return nil, ErrNotFound
	}
	var receipts types.Receipts
	if err := json.Unmarshal(answer, &receipts); err != nil {
		return nil, &InvalidError{What: "the receipts of a block", Err: err}
	}
	for i, receipt := range receipts {
		if err := checkReceipt(receipt); err != nil {
			return nil, &InvalidError{What: "the receipts of a block", Err: fmt.Errorf("receipt %d: %w", i, err)}
		}
	}
	return receipts, nil
}

// checkReceipt returns what is wrong with the form of a receipt. The root of receipts covers every
// status but 0 as 1, and a state root of any length as it is, so a success could have the form of a
// failure, or of a state root of one byte.
func checkReceipt(receipt *types.Receipt) error {
	switch {
	case receipt == nil:
		return errors.New("it is null")
	case slices.Contains(receipt.Logs, nil):
		return errors.New("one of its logs is null")
	case len(receipt.PostState) == common.HashLength:
		return nil
	case len(receipt.PostState) > 0:
		return fmt.Errorf("a state root of %d bytes (want %d)", len(receipt.PostState), common.HashLength)
	case receipt.Status > types.ReceiptStatusSuccessful:
		return fmt.Errorf("the status %d (want 0 or 1)", receipt.Status)
	}
	return nil
}
