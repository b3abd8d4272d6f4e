package main

import (
	"errors"
	"fmt"
	"os"

	"ashlar/app/command"
	"ashlar/family"

	"github.com/spf13/cobra"
)

func snapshotCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Write the state of a network to files, and begin a network with them",
	}
	c.AddCommand(createSnapshot(), loadSnapshot())
	return c
}

func createSnapshot() *cobra.Command {
	var s command.SnapshotCreate
	var block, from uint64
	c := &cobra.Command{
		Use:         "create --data DIR --network NAME --out DIR [--block N] [--history-from N]",
		Short:       "Write a snapshot of a network; also works while a server is running",
		Annotations: leaves("a snapshot that was under way is not complete; the next begins anew"),
		Long: `Writes the state of a block that no reorganization can remove, and the blocks before it
that later rules need, as compressed files with a manifest of their hashes. Any web server
can offer them, and ashlar snapshot load begins a network with them.

With --history-from, the snapshot has the state of that block and the blocks after it. The
network that is loaded then answers questions about all of them.

The same blocks make the same files. A snapshot that was interrupted begins anew; with the
same --block, it becomes the same. A folder takes one snapshot. Backups can be made meanwhile.`,
		Example: `  ashlar snapshot create --data data --network sepolia --out sepolia-snapshot
  ashlar snapshot create --data data --network sepolia --out out --block 9000000 --history-from 8990000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := needStores(c, s.Data, s.Config); err != nil {
				return err
			}
			for _, f := range [][2]string{{"network", s.Network}, {"out", s.Folder}} {
				if err := need(c, f[0], f[1]); err != nil {
					return err
				}
			}
			if c.Flags().Changed("block") {
				s.Block = &block
			}
			if c.Flags().Changed("history-from") {
				s.From = &from
			}
			err := s.Run(c.Context(), os.Stderr)
			if errors.Is(err, family.ErrRange) {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return err
		},
	}
	c.Flags().StringVar(&s.Data, "data", "", "data directory")
	c.Flags().StringVar(&s.Config, "config", "", configUsage)
	c.Flags().StringVar(&s.Network, "network", "", "name of the network")
	c.Flags().StringVar(&s.Folder, "out", "", "folder for the files; created if it does not exist")
	c.Flags().Uint64Var(&block, "block", 0, "last block (default: the newest that no reorganization can remove)")
	c.Flags().Uint64Var(&from, "history-from", 0, "first block with state (default: the last block)")
	return c
}

func loadSnapshot() *cobra.Command {
	var s command.SnapshotLoad
	var memory string
	c := &cobra.Command{
		Use:         "load --data DIR --network NAME --genesis FILE|NAME --from DIR|URL --block HASH",
		Short:       "Begin a network with a snapshot",
		Annotations: leaves("the same command continues"),
		Long: `Begins a new network with a snapshot, from a folder or a web server. HASH is the hash of
its last block, from a source that you trust: a consensus client, or several explorers.

Nothing else is trusted but the genesis. The state root is computed from all accounts and
slots, code is compared with its hash, headers and blocks follow from the hash of the last
block, and blocks after the first one with state are executed. The total difficulty before
the merge can be proven for short chains only; the log says so.

Files are downloaded in parallel and are not stored. A load can be stopped at any time;
run the same command again to continue. It takes the memory that --memory says, like
ashlar import.`,
		Example: `  ashlar snapshot load --data data --network sepolia --genesis sepolia \
    --from https://snapshots.example.org/sepolia \
    --block 0x5d2b0e6b4e3c4b8a2f2f6f0e1d5f0b8c5c1f1c7a9a1d3d3a5f9e7c6b5a493827`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := needStores(c, s.Data, s.Config); err != nil {
				return err
			}
			for _, f := range [][2]string{{"network", s.Network}, {"from", s.From}, {"block", s.Block}} {
				if err := need(c, f[0], f[1]); err != nil {
					return err
				}
			}
			s.Flags = make(map[string]string)
			for _, flag := range command.SnapshotFlags() {
				if value := c.Flags().Lookup(flag.Name).Value.String(); value != "" {
					s.Flags[flag.Name] = value
				}
			}
			var err error
			if s.Memory, err = command.ParseMemory(memory); err != nil {
				return err
			}
			return s.Run(c.Context(), os.Stderr)
		},
	}
	c.Flags().StringVar(&s.Data, "data", "", "data directory; created if it does not exist")
	c.Flags().StringVar(&s.Config, "config", "", configUsage)
	c.Flags().StringVar(&s.Network, "network", "", "name of the network, as in URLs")
	c.Flags().StringVar(&s.From, "from", "", "folder or URL of the snapshot")
	c.Flags().StringVar(&s.Block, "block", "", "hash of the last block of the snapshot")
	for _, flag := range command.SnapshotFlags() {
		c.Flags().String(flag.Name, "", flag.Usage)
	}
	c.Flags().StringVar(&memory, "memory", command.DefaultMemory.String(), memoryUsage)
	c.Flags().BoolVar(&s.Compact, "compact", true, "compact the store at the end")
	return c
}
