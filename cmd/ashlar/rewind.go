package main

import (
	"fmt"
	"os"

	"ashlar/app/command"

	"github.com/spf13/cobra"
)

func rewindCommand() *cobra.Command {
	var r command.Rewind
	c := &cobra.Command{
		Use:         "rewind --data DIR --network NAME --to BLOCK",
		Short:       "Remove the last blocks of a network",
		Annotations: leaves("the same command completes it; until then the network may not be served"),
		Long: `Takes a network back to an earlier block: everything that later blocks have added is
removed, settled or not. It is meant for a network that has settled blocks of a wrong
chain. Afterwards blocks can be imported, or a source followed, from there on.

No server may have the network open; with --pause a running server takes it out of
service until the rewind is done. A rewind can be stopped at any time, even by kill -9;
until the same command has completed it, the network is not served.

Finding the rows takes longer the larger the archive is, since most are ordered by hash.`,
		Example: `  ashlar rewind --data data --network sepolia --to 7500000
  ashlar verify --data data --network sepolia`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := needStores(c, r.Data, r.Config); err != nil {
				return err
			}
			if err := need(c, "network", r.Network); err != nil {
				return err
			}
			if !c.Flags().Changed("to") {
				return fmt.Errorf("%w: missing --to; see %s --help", errUsage, c.CommandPath())
			}
			return r.Run(c.Context(), os.Stdout, os.Stderr)
		},
	}
	c.Flags().StringVar(&r.Data, "data", "", "data directory")
	c.Flags().StringVar(&r.Config, "config", "", configUsage)
	c.Flags().StringVar(&r.Network, "network", "", "name of the network")
	c.Flags().BoolVar(&r.Pause, "pause", false, pauseUsage)
	c.Flags().Uint64Var(&r.To, "to", 0, "the block to go back to, which stays")
	return c
}
