package main

import (
	"os"

	"ashlar/app/command"

	"github.com/spf13/cobra"
)

func joinCommand() *cobra.Command {
	var j command.Join
	c := &cobra.Command{
		Use:         "join --data DIR --network NAME --from DIR|FILE",
		Short:       "Add a range of blocks that was made elsewhere",
		Annotations: leaves("the same command completes it; until then the network may not be served"),
		Long: `Adds to a network another range of its blocks with their states, such as one that was
made on another machine. One of the two ends with the block whose state the other
began with. The ranges are compared at that block first; those that do not fit are
refused. Rows are copied from --from, which stays as it is, so it is best the smaller
range. It is a data directory, or a configuration file that says where the stores are.

No server may have either of them open; with --pause a running server takes the network
of --data out of service until the join is done. A join can be stopped at any time, even
by kill -9; until the same command has completed it, the network is not served.`,
		Example: `  ashlar join --data data --network mainnet --from /mnt/blocks-0-to-20000000
  ashlar verify --data data --network mainnet`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := needStores(c, j.Data, j.Config); err != nil {
				return err
			}
			if err := need(c, "network", j.Network); err != nil {
				return err
			}
			if err := need(c, "from", j.From); err != nil {
				return err
			}
			return j.Run(c.Context(), os.Stdout, os.Stderr)
		},
	}
	c.Flags().StringVar(&j.Data, "data", "", "data directory")
	c.Flags().StringVar(&j.Config, "config", "", configUsage)
	c.Flags().StringVar(&j.Network, "network", "", "name of the network")
	c.Flags().StringVar(&j.From, "from", "", "data directory or configuration file with the other range")
	c.Flags().BoolVar(&j.Pause, "pause", false, pauseUsage)
	return c
}
