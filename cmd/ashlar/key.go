package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"text/tabwriter"
	"time"

	"ashlar/account"
	"ashlar/account/control"
	"ashlar/app"

	"github.com/spf13/cobra"
)

func keyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Create, list, restrict and revoke API keys; works beside a running server too",
	}
	var data, name string
	c.PersistentFlags().StringVar(&data, "data", "", "data directory")
	with := func(c *cobra.Command, do func(context.Context, control.Keys) error) error {
		if err := need(c, "data", data); err != nil {
			return err
		}
		keys, closer, err := app.OpenKeys(c.Context(), data)
		if err != nil {
			return err
		}
		return errors.Join(do(c.Context(), keys), closer.Close())
	}
	create := &cobra.Command{
		Use:   "create --data DIR [--name TEXT]",
		Short: "Make a key and print it: it is shown this once",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return with(c, func(ctx context.Context, keys control.Keys) error {
				issued, err := keys.Create(ctx, account.NewKey{Name: name})
				if err == nil {
					fmt.Println(issued.APIKey)
				}
				return err
			})
		},
	}
	create.Flags().StringVar(&name, "name", "", "what the key is for")
	list := &cobra.Command{
		Use:   "list --data DIR",
		Short: "List the keys by their IDs",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return with(c, func(ctx context.Context, keys control.Keys) error { return listKeys(ctx, keys) })
		},
	}
	revoke := &cobra.Command{
		Use:   "revoke --data DIR ID|NAME",
		Short: "End a key, at once and for good",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return with(c, func(ctx context.Context, keys control.Keys) error {
				key, err := keys.Revoke(ctx, args[0])
				if err == nil {
					fmt.Println(key.ID)
				}
				return err
			})
		},
	}
	c.AddCommand(create, list, revoke, restrictCommand(with))
	return c
}

// restrictCommand gives a key rules.
func restrictCommand(with func(*cobra.Command, func(context.Context, control.Keys) error) error) *cobra.Command {
	var rules account.Rules
	var addresses, contracts []string
	c := &cobra.Command{
		Use:   "restrict --data DIR ID|NAME",
		Short: "Give a key rules in place of those it has; what is left out is not restricted",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			for _, text := range addresses {
				prefix, err := netip.ParsePrefix(text)
				if err != nil {
					return fmt.Errorf("%w: --addresses: %w; expected one such as 192.0.2.0/24", errUsage, err)
				}
				rules.Addresses = append(rules.Addresses, prefix)
			}
			for _, text := range contracts {
				var contract account.Contract
				if err := contract.UnmarshalText([]byte(text)); err != nil {
					return fmt.Errorf("%w: --contracts: %w", errUsage, err)
				}
				rules.Contracts = append(rules.Contracts, contract)
			}
			return with(c, func(ctx context.Context, keys control.Keys) error {
				key, err := keys.Restrict(ctx, args[0], rules)
				if err == nil {
					fmt.Println(key.ID)
				}
				return err
			})
		},
	}
	c.Flags().StringSliceVar(&rules.Networks, "networks", nil, "names of networks")
	c.Flags().StringSliceVar(&rules.Methods, "methods", nil, "names of methods, or beginnings such as eth_*")
	c.Flags().StringSliceVar(&rules.Origins, "origins", nil, "origins of web pages")
	c.Flags().StringSliceVar(&addresses, "addresses", nil, "networks of clients, such as 192.0.2.0/24")
	c.Flags().StringSliceVar(&contracts, "contracts", nil, "addresses of contracts that may be called and read")
	c.Flags().Uint32Var(&rules.PerSecond, "per-second", 0, "credits a second (default as the server has it)")
	c.Flags().Uint64Var(&rules.PerDay, "per-day", 0, "credits a day (default as the server has it)")
	return c
}

func listKeys(ctx context.Context, keys control.Keys) error {
	all, err := keys.List(ctx)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tNAME\tCREATED\tREVOKED")
	for _, key := range all {
		revoked := "-"
		if !key.Live() {
			revoked = key.Revoked.UTC().Format(time.DateTime)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", key.ID, key.Name, key.Created.UTC().Format(time.DateTime), revoked)
	}
	return table.Flush()
}
