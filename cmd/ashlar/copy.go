package main

import (
	"os"

	"ashlar/app/command"

	"github.com/spf13/cobra"
)

func copyCommand() *cobra.Command {
	var copied command.Copy
	c := &cobra.Command{
		Use:         "copy --from DIR|FILE --to DIR|FILE [--network NAME]",
		Short:       "Copy networks and accounts to a cluster, or back",
		Annotations: leaves("the same command continues where it was"),
		Long: `Copies all networks and the accounts from one place to another: from a data directory
to the keyspace of a cluster, back, or between two of the same kind. A place is a data
directory, or a configuration file that says where the stores are; its role does not
matter. With --network only that network is copied, without accounts.

No server may have the data directories open, and no process may write to the networks
of a keyspace; readers need not stop. The new place must not yet have what is copied.

Every row is read back and checked. A copy is served only when it is complete. If the
command is stopped, even by kill -9, the same command goes on where it was.`,
		Example: `  ashlar copy --from data --to writer.yaml
  ashlar copy --from reader.yaml --to data --network sepolia`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := need(c, "from", copied.From); err != nil {
				return err
			}
			if err := need(c, "to", copied.To); err != nil {
				return err
			}
			return copied.Run(c.Context(), os.Stderr)
		},
	}
	c.Flags().StringVar(&copied.From, "from", "", "data directory or configuration file to copy from")
	c.Flags().StringVar(&copied.To, "to", "", "data directory or configuration file to copy to")
	c.Flags().StringVar(&copied.Network, "network", "", "name of the network (default: all, and the accounts)")
	return c
}
