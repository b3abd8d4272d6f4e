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
		Use:   "verify --data DIR --network NAME [--from N] [--to N] [--full] [--json]",
		Short: "Check what is stored of a network against itself",
		Long: `Reads a network back and checks it against itself: hashes and parents, transactions
and receipts against their roots, senders against signatures, every look-up and
log index row both ways, every trie node up to the state root, accounts, slots and
code against the tries both ways. Nothing is changed.

The state is checked as of a sample of blocks: the first, the last, and some between
that are chosen anew each time. With --full it is checked as of every block.

Of a network of the family starknet, which holds no state, the hashes of blocks are
recomputed from what is held of them, and it is said of how many that could not be
done; parents and every row are checked as above.

Exit code 0: sound. 1: something is wrong, and the first such row is named; or the
network could not be checked. 2: wrong usage.`,
		Example: `  ashlar verify --data data --network sepolia
  ashlar verify --data data --network sepolia --full --from 1000 --to 2000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := need(c, "data", v.Data); err != nil {
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
	c.Flags().StringVar(&v.Network, "network", "", "name of the network")
	c.Flags().Uint64Var(&v.From, "from", 0, "first block (default the first that is held)")
	c.Flags().Uint64Var(&v.To, "to", 0, "last block (default the head)")
	c.Flags().BoolVar(&v.Full, "full", false, "check the state as of every block; not for networks of the family starknet")
	c.Flags().BoolVar(&v.JSON, "json", false, "print JSON")
	return c
}
