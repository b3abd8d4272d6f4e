package main

import (
	"os"
	"strings"

	"ashlar/app"
	"ashlar/evm/genesis"

	"github.com/spf13/cobra"
)

func importCommand() *cobra.Command {
	var i app.Import
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
			i.Files = files
			return i.Run(c.Context(), os.Stderr)
		},
	}
	c.Flags().StringVar(&i.Data, "data", "", "data directory, made if it does not exist")
	c.Flags().StringVar(&i.Network, "network", "", "name of the network, as it is in URLs")
	c.Flags().StringVar(&i.Genesis, "genesis", "", "genesis file, or one of "+strings.Join(genesis.Names(), ", ")+"; not needed for a network that is there")
	c.Flags().StringVar(&i.Family, "family", "", "family of the network's chain: evm or starknet (default evm)")
	c.Flags().StringVar(&i.Chain, "chain", "", "ID of a Starknet network's chain, such as SN_MAIN or SN_SEPOLIA (default: that of the public network of the same name, else the name in upper case)")
	c.Flags().BoolVar(&i.Compact, "compact", true, "rewrite the network into its smallest form at the end")
	return c
}
