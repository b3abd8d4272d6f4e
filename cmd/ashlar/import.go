package main

import (
	"fmt"
	"os"

	"ashlar/app"
	"ashlar/app/command"

	"github.com/spf13/cobra"
)

func importCommand() *cobra.Command {
	var i command.Import
	c := &cobra.Command{
		Use:   "import --data DIR --network NAME [--genesis FILE|NAME] [--family starknet] FILE...",
		Short: "Bring the blocks of files into a network",
		Long: `Executes and verifies the blocks of chain exports (RLP, also gzipped) and era1
files, in the order given, and keeps every version of everything.

Into a network of the family starknet it brings blocks with their receipts and events,
from files of a feeder gateway's answers or folders of them, and checks their links
and their hashes. Its first block may be any.

An import may be stopped at any time. The same command goes on where it was; what
is there already is skipped. A block that breaks a rule ends the import with an
error that names it; the blocks before it stay.`,
		Example: `  ashlar import --data data --network sepolia --genesis sepolia sepolia-00000-643a00f7.era1
  ashlar import --data data --network devnet --genesis genesis.json chain.rlp.gz
  ashlar import --data data --network mainnet-l2 --family starknet --chain SN_MAIN blocks/`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			if err := need(c, "data", i.Data); err != nil {
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
			return i.Run(c.Context(), os.Stderr)
		},
	}
	c.Flags().StringVar(&i.Data, "data", "", "data directory, made if it does not exist")
	c.Flags().StringVar(&i.Network, "network", "", "name of the network, as it is in URLs")
	c.Flags().StringVar(&i.Family, "family", "", fmt.Sprintf("family of the network: %s (default %s)", app.Families(), app.Families().Default().Name()))
	for _, flag := range command.ImportFlags() {
		c.Flags().String(flag.Name, "", flag.Usage)
	}
	c.Flags().BoolVar(&i.Compact, "compact", true, "rewrite the network into its smallest form at the end")
	return c
}
