package main

import (
	"fmt"

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
				served := "no"
				if n.Served {
					served = "yes"
				}
				fmt.Fprintf(table, "%s\t%s\t%.1f MiB\n", n.Name, served, float64(n.Bytes)/(1<<20))
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

A server whose configuration lists networks serves no others.`,
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
		Short: "Remove a network that is not served, with all its blocks",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := need(c, "data", *data); err != nil {
				return err
			}
			if !sure {
				return fmt.Errorf("%w: all blocks of the network %s would be lost: give --yes to remove them", errUsage, args[0])
			}
			return command.RemoveNetwork(*data, args[0])
		},
	}
	c.Flags().BoolVar(&sure, "yes", false, "really remove it")
	return c
}
