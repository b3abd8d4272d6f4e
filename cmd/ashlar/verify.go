package main

import (
	"errors"
	"fmt"
	"os"

	"ashlar/app/command"
	"ashlar/family"

	"github.com/spf13/cobra"
)

func verifyCommand() *cobra.Command {
	var v command.Verify
	c := &cobra.Command{
		Use:         "verify --data DIR --network NAME [--from N] [--to N] [--full] [--json]",
		Short:       "Verify the stored data of a network",
		Annotations: leaves("nothing was changed, and the check is not complete"),
		Long: `Reads a network back and checks it against itself: hashes and parents, transactions
and receipts against their roots, senders against signatures, every look-up and
log index row both ways, every trie node up to the state root, accounts, slots and
code against the tries both ways. Nothing is changed.

The state is checked as of a sample of blocks: the first, the last, and random ones
between them. With --full it is checked as of every block. Where trie nodes were removed,
the tries are built again from accounts and slots, as of 4 blocks, or 16 with --full;
as of the others only the form of the rows is checked, as the output then says.

A network of family starknet has no state. The hashes of its blocks are recomputed, and
the number of blocks for which that is impossible is reported; parents and all rows are
checked as above.

Exit codes: 0 sound; 1 damaged, with the first damaged row, or not checked; 2 wrong
usage.`,
		Example: `  ashlar verify --data data --network sepolia
  ashlar verify --data data --network sepolia --full --from 1000 --to 2000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := needStores(c, v.Data, v.Config); err != nil {
				return err
			}
			if err := need(c, "network", v.Network); err != nil {
				return err
			}
			if !c.Flags().Changed("to") {
				v.To = command.Head
			}
			err := v.Run(c.Context(), os.Stdout, os.Stderr)
			if errors.Is(err, family.ErrRange) || errors.Is(err, family.ErrNoState) {
				return fmt.Errorf("%w: %w", errUsage, err)
			}
			return err
		},
	}
	c.Flags().StringVar(&v.Data, "data", "", "data directory")
	c.Flags().StringVar(&v.Config, "config", "", configUsage)
	c.Flags().StringVar(&v.Network, "network", "", "name of the network")
	c.Flags().Uint64Var(&v.From, "from", 0, "first block (default: the first stored block)")
	c.Flags().Uint64Var(&v.To, "to", 0, "last block (default: the head)")
	c.Flags().BoolVar(&v.Full, "full", false, "check the state as of every block; not for networks of family starknet")
	c.Flags().BoolVar(&v.JSON, "json", false, "print JSON")
	return c
}
