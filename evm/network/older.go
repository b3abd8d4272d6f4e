package network

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"ashlar/evm/execute"
	"ashlar/evm/ingest"
	"ashlar/evm/ingest/older"
	"ashlar/evm/source/file"
	"ashlar/evm/source/node"
	"ashlar/family"
)

// importOlder adds the blocks of history files that are before the network's first block,
// the newest file first: each is verified by the block after it. Nodes then have the rest.
func (i *imported) importOlder(ctx context.Context, files []file.Listed, show family.Show) error {
	for _, f := range slices.Backward(files) {
		first := i.archive.Extent().Blocks
		if first <= 1 || !f.History || f.Blocks.First >= first || f.Blocks.Last == 0 {
			continue
		}
		transactions, err := i.addOlder(ctx, f.Path, show)
		if err != nil {
			return err
		}
		now := i.archive.Extent().Blocks
		added := i.older.add(first, now, transactions)
		i.older.read.Add(added)
		slog.Info("older blocks added", "file", f.Path, "blocks", added, "first_block", now)
	}
	return i.fetchOlder(ctx, show)
}

func (i *imported) addOlder(ctx context.Context, path string, show family.Show) (transactions uint64, err error) {
	f, err := file.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	show.Begin(path, f.Progress)
	blocks, err := f.Recorded()
	if err != nil {
		return 0, err
	}
	executor, err := execute.New(i.archive.Genesis().Config)
	if err != nil {
		return 0, err
	}
	transactions, err = ingest.AddOlder(ctx, i.archive, executor, blocks)
	return transactions, inFile(path, err)
}

// olderBlocks counts the blocks before the first one that were added.
type olderBlocks struct {
	blocks, transactions atomic.Uint64
	read                 atomic.Uint64 // blocks of them from files, which are read again for the blocks after them
}

// add counts the blocks from now to before first and returns how many these are. The genesis was there.
func (o *olderBlocks) add(first, now, transactions uint64) (blocks uint64) {
	blocks = first - max(now, 1)
	o.blocks.Add(blocks)
	o.transactions.Add(transactions)
	return blocks
}

// fetchOlder adds the blocks before the network's first block from nodes, if there are any.
func (i *imported) fetchOlder(ctx context.Context, show family.Show) error {
	first := i.archive.Extent().Blocks
	if len(i.olderNodes) == 0 || first <= 1 {
		return nil
	}
	executor, err := execute.New(i.archive.Genesis().Config)
	if err != nil {
		return err
	}
	var nodes []older.Node
	for _, address := range i.olderNodes {
		client, err := node.New(address)
		if err != nil {
			return err
		}
		defer client.Close()
		nodes = append(nodes, client)
	}
	source := older.New(i.archive, executor, older.DefaultPace(), nodes...)
	show.Begin(fmt.Sprintf("blocks before %d", first), func() (read, total int64) {
		added, all := source.Progress()
		return int64(added), int64(all)
	})
	err = source.Run(ctx)
	now := i.archive.Extent().Blocks
	slog.Info("older blocks fetched", "blocks", i.older.add(first, now, source.Transactions()), "first_block", now)
	if err != nil {
		return fmt.Errorf("blocks before %d: %w", now, err)
	}
	return nil
}

// parseOlder parses the flag with the nodes for older blocks.
func parseOlder(flag string) (family.Sources, error) {
	if flag == "" {
		return nil, nil
	}
	nodes := family.Sources(strings.Split(flag, ","))
	if err := nodes.Check(node.Schemes()...); err != nil {
		return nil, family.Usage(fmt.Errorf("--%s: %w", flagOlder, err))
	}
	return nodes, nil
}
