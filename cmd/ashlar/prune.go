package main

import (
	"fmt"
	"os"

	"ashlar/app/command"

	"github.com/spf13/cobra"
)

func pruneCommand() *cobra.Command {
	var p command.Prune
	c := &cobra.Command{
		Use:         "prune --data DIR --network NAME [--proofs N] [--state N] [--history N]",
		Short:       "Remove older proofs, states or blocks of a network",
		Annotations: leaves("the same command continues"),
		Long: `Removes from an EVM network what is older than its last blocks: trie nodes, of which
proofs are made; states; or whole blocks with their receipts and logs. Each flag is a
number of blocks, back from the last settled one, or "all". What is removed does not come
back. Trie nodes of old blocks take a third to a half of an archive.

A server removes the same in the background if the configuration has a retention for
the network. This command does it at once, for example between the files of an import
for which the disk is too small otherwise. It writes before it frees space, so the disk
must not be full.

No server may have the network open; with --pause a running server takes it out of
service until it is done. It can be stopped at any time, even by kill -9: the same
command, or a server with that retention, goes on.`,
		Example: `  ashlar prune --data data --network mainnet --proofs 128000
  ashlar prune --data data --network sepolia --state 128000 --history 500000`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := need(c, "data", p.Data); err != nil {
				return err
			}
			if err := need(c, "network", p.Network); err != nil {
				return err
			}
			if p.Keep.All() {
				return fmt.Errorf("%w: it would keep everything (want a number of blocks for --proofs, --state or --history); see %s --help", errUsage, c.CommandPath())
			}
			if err := p.Keep.Check(); err != nil {
				return fmt.Errorf("%w: %w; see %s --help", errUsage, err, c.CommandPath())
			}
			return p.Run(c.Context(), os.Stdout, os.Stderr)
		},
	}
	c.Flags().StringVar(&p.Data, "data", "", "data directory")
	c.Flags().StringVar(&p.Network, "network", "", "name of the network")
	c.Flags().Var(&p.Keep.Proofs, "proofs", "number of blocks whose states can be proven, at most as many as states")
	c.Flags().Var(&p.Keep.State, "state", "number of blocks whose states are kept, at most as many as blocks")
	c.Flags().Var(&p.Keep.History, "history", "number of blocks that are kept")
	c.Flags().BoolVar(&p.Pause, "pause", false, pauseUsage)
	return c
}
