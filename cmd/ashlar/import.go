package main

import (
	"errors"
	"fmt"
	"os"

	"ashlar/app"
	"ashlar/app/command"

	"github.com/spf13/cobra"
)

// pauseUsage describes a flag of commands that write to a network.
const pauseUsage = "if a running server serves the network, take it out of service meanwhile"

// memoryUsage describes --memory of commands that import blocks.
var memoryUsage = fmt.Sprintf("memory that the command may take, at least %s", command.LeastMemory)

func importCommand() *cobra.Command {
	var i command.Import
	var memory string
	c := &cobra.Command{
		Use:         "import --data DIR --network NAME [--genesis FILE|NAME] [--state geth:DIR] [--older URL,...] [--family starknet] FILE...",
		Short:       "Import blocks from files into a network",
		Annotations: leaves("stored blocks are kept, and the same command continues"),
		Long: `Executes and verifies the blocks of chain exports (RLP, also gzipped) and of history
files (era1, ERE), in the given order, and keeps every version of the state. A folder
stands for the history files in it, in the order of their blocks. If there is a
checksums.txt beside a history file, the file must be listed there.

With --state, a new network begins with the state of another node instead of the
genesis: that of the newest block for which the data directory of a stopped geth has one.
The tries are built anew, and the state root is compared with the header. The network
then answers questions about the state and proofs from that block on. FILEs continue
from there. geth's directory is only read.

With --older, fetches the blocks before the network's first one from nodes, with their
receipts. Each is verified by the block after it; none is executed.

With --family starknet, imports blocks with their receipts and events from files, or
folders of files, with the answers of a feeder gateway. Links and hashes are checked.
The first block can have any number.

An import takes the memory that --memory says, 1.5 GiB by default. With more memory, the
import of a chain with millions of transactions is faster, because more of the state is kept.

An import can be stopped at any time. Run the same command again to continue; stored
blocks are skipped. An invalid block ends the import with an error that names it; the
blocks before it stay.`,
		Example: `  ashlar import --data data --network sepolia --genesis sepolia sepolia-00000-643a00f7.era1
  ashlar import --data data --network mainnet --genesis mainnet history/
  ashlar import --data data --network devnet --genesis genesis.json chain.rlp.gz
  ashlar import --data data --network mainnet --genesis mainnet --state geth:/var/lib/geth
  ashlar import --data data --network mainnet-l2 --family starknet --chain SN_MAIN blocks/`,
		RunE: func(c *cobra.Command, files []string) error {
			if err := needStores(c, i.Data, i.Config); err != nil {
				return err
			}
			if err := need(c, "network", i.Network); err != nil {
				return err
			}
			i.Files, i.Flags = files, make(map[string]string)
			for _, flag := range command.ImportFlags() {
				if value := c.Flags().Lookup(flag.Name).Value.String(); value != "" {
					i.Flags[flag.Name] = value
				}
			}
			var err error
			if i.Memory, err = command.ParseMemory(memory); err != nil {
				return err
			}
			err = i.Run(c.Context(), os.Stderr)
			if errors.Is(err, command.ErrNoFiles) {
				return fmt.Errorf("%w: %w; see %s --help", errUsage, err, c.CommandPath())
			}
			return err
		},
	}
	c.Flags().StringVar(&i.Data, "data", "", "data directory; created if it does not exist")
	c.Flags().StringVar(&i.Config, "config", "", configUsage)
	c.Flags().StringVar(&i.Network, "network", "", "name of the network, as in URLs")
	c.Flags().StringVar(&i.Family, "family", "", fmt.Sprintf("family of the network: %s (default %s)", app.Families(), app.Families().Default().Name()))
	for _, flag := range command.ImportFlags() {
		c.Flags().String(flag.Name, "", flag.Usage)
	}
	c.Flags().BoolVar(&i.Pause, "pause", false, pauseUsage)
	c.Flags().StringVar(&memory, "memory", command.DefaultMemory.String(), memoryUsage)
	c.Flags().BoolVar(&i.Compact, "compact", true, "compact the store at the end")
	return c
}
