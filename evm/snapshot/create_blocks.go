package snapshot

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"
)

// writeHeaders writes the headers from the block with state to the head.
func (c *Creator) writeHeaders(ctx context.Context) error {
	w := c.writer(Headers)
	for number := c.manifest.State.Number; number <= c.manifest.Head.Number; number++ {
		header, _, err := c.blocks.Header(ctx, number)
		if err == nil {
			err = c.put(w, number, header)
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
	}
	return c.finish(w)
}

// writeBlocks writes the block with state and those before it.
func (c *Creator) writeBlocks(ctx context.Context) error {
	w := c.writer(Blocks)
	for number := c.manifest.State.Number; number >= oldest(c.manifest.State.Number); number-- {
		record, err := c.recorded(ctx, number)
		if err == nil {
			err = c.put(w, number, record)
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
	}
	return c.finish(w)
}

func (c *Creator) recorded(ctx context.Context, number uint64) ([]byte, error) {
	header, _, err := c.blocks.Header(ctx, number)
	if err != nil {
		return nil, err
	}
	decoded := new(types.Header)
	if err := rlp.DecodeBytes(header, decoded); err != nil {
		return nil, err
	}
	body, err := c.blocks.Body(ctx, number)
	if err != nil {
		return nil, err
	}
	content := new(types.Body)
	if err := rlp.DecodeBytes(body, content); err != nil {
		return nil, err
	}
	one := recorded{Block: types.NewBlockWithHeader(decoded).WithBody(*content)}
	if one.Receipts, err = c.blocks.Receipts(ctx, number); err != nil {
		return nil, err
	}
	for _, receipt := range one.Receipts {
		receipt.Bloom = types.CreateBloom(receipt)
	}
	if decoded.BlockAccessListHash != nil {
		if one.AccessList, err = c.archive.AccessList(ctx, number); err != nil {
			return nil, err
		}
	}
	return rlp.EncodeToBytes(&one)
}

// writeBodies writes the blocks after the one with state.
func (c *Creator) writeBodies(ctx context.Context) error {
	w := c.writer(Bodies)
	for number := c.manifest.State.Number + 1; number <= c.manifest.Head.Number; number++ {
		body, err := c.blocks.Body(ctx, number)
		if err == nil {
			err = c.put(w, number, body)
		}
		if err != nil {
			return fmt.Errorf("block %d: %w", number, err)
		}
		c.blocksDone.Add(1)
	}
	return c.finish(w)
}

// put appends a record about a block.
func (c *Creator) put(w *chunkWriter, number uint64, record []byte) error {
	first, err := w.begins()
	if err != nil {
		return err
	}
	if first {
		w.first.Block = &number
	}
	w.raw = appendField(w.raw, record)
	return nil
}
