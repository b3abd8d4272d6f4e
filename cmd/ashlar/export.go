package main

import (
	"errors"
	"fmt"
	"os"

	"ashlar/app/command"
	"ashlar/family"

	"github.com/spf13/cobra"
)

func exportCommand() *cobra.Command {
	var e command.Export
	var to uint64
	c := &cobra.Command{
		Use:         "export --data DIR --network NAME --format era1|ere --out DIR [--from N] [--to N]",
		Short:       "Write the blocks of a network to history files",
		Annotations: leaves("files with their names are complete, and the same command continues"),
		Long: `Writes the blocks and receipts of a network, up to the last one that no
reorganization can remove, as history files that Ethereum clients import: era1 for
blocks before the merge, ERE for all. A file holds the blocks of one era of 8192, and
checksums.txt the SHA-256 of every history file in the folder, as geth writes it.

A file gets its name when all of it is on the disk, so an export may be stopped at any
time and run again. A file that holds fewer blocks of the same era is replaced.

Networks of the family starknet are not exported. A network that a server has open
cannot be exported.`,
		Example: `  ashlar export --data data --network sepolia --format ere --out history
  ashlar export --data data --network mainnet --format era1 --out history --from 8192 --to 16383`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			for _, f := range [][2]string{{"data", e.Data}, {"network", e.Network}, {"format", e.Format}, {"out", e.Folder}} {
				if err := need(c, f[0], f[1]); err != nil {
					return err
				}
			}
			if c.Flags().Changed("to") {
				e.To = &to
			}
			err := e.Run(c.Context(), os.Stderr)
			if errors.Is(err, family.ErrRange) || errors.Is(err, command.ErrFormat) {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return err
		},
	}
	c.Flags().StringVar(&e.Data, "data", "", "data directory")
	c.Flags().StringVar(&e.Network, "network", "", "name of the network, and of the files")
	c.Flags().StringVar(&e.Format, "format", "", "era1 or ere")
	c.Flags().StringVar(&e.Folder, "out", "", "folder for the files; created if it does not exist")
	c.Flags().Uint64Var(&e.From, "from", 0, "first block")
	c.Flags().Uint64Var(&to, "to", 0, "last block (default the last that the format can hold)")
	return c
}
