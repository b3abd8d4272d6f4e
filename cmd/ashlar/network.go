package main

import (
	"fmt"
	"os"

	"ashlar/app/command"

	"github.com/spf13/cobra"
)

func networkCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "network",
		Short: "List, add and remove networks; also works while a server is running",
	}
	var data string
	c.PersistentFlags().StringVar(&data, "data", "", "data directory")
	c.AddCommand(listNetworks(&data), addNetwork(&data), removeNetwork(&data))
	return c
}

func listNetworks(data *string) *cobra.Command {
	return &cobra.Command{
		Use:   "list --data DIR",
		Short: "List the stored networks, also those that are not served",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := need(c, "data", *data); err != nil {
				return err
			}
			all, err := command.ListNetworks(c.Context(), *data)
			if err != nil {
				return err
			}
			table := newTable("NETWORK\tSERVED\tDISK")
			for _, n := range all {
				served, disk := "no", fmt.Sprintf("%.1f MiB", float64(n.Bytes)/(1<<20))
				if n.Served {
					served = "yes"
				}
				if n.Err != nil {
					disk = "unknown"
					fmt.Fprintln(os.Stderr, n.Err)
				}
				fmt.Fprintf(table, "%s\t%s\t%s\n", n.Name, served, disk)
			}
			return table.Flush()
		},
	}
}

func addNetwork(data *string) *cobra.Command {
	return &cobra.Command{
		Use:   "add --data DIR NAME",
		Short: "Make the running server serve a network that was imported meanwhile",
		Long: `Makes the running server serve another network of its data directory, while it goes on
serving the others. Importing a new network needs no pause of the server either.

The network's entries are read from the configuration file again; its other entries stay
as they are. If the file lists networks, it must list this one.`,
		Example: `  ashlar import --data data --network devnet --genesis genesis.json chain.rlp
  ashlar network add --data data devnet`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := need(c, "data", *data); err != nil {
				return err
			}
			return command.AddNetwork(c.Context(), *data, args[0])
		},
	}
}

func removeNetwork(data *string) *cobra.Command {
	var sure bool
	c := &cobra.Command{
		Use:   "remove --data DIR NAME --yes",
		Short: "Remove a network with all its blocks",
		Long: `Removes a network with all its blocks. A running server first takes it out of service:
new requests for it are answered as for an unknown network, those in progress are
finished, and its WebSockets are closed. Other networks are not affected.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := need(c, "data", *data); err != nil {
				return err
			}
			if !sure {
				return fmt.Errorf("%w: all blocks of the network %s would be lost: give --yes to remove them", errUsage, args[0])
			}
			listed, err := command.RemoveNetwork(c.Context(), *data, args[0])
			if listed {
				fmt.Fprintf(os.Stderr, "The server's configuration still lists %s: remove it there before the next start.\n", args[0])
			}
			return err
		},
	}
	c.Flags().BoolVar(&sure, "yes", false, "really remove it")
	return c
}
