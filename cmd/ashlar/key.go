package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"ashlar/account/control"
	"ashlar/app"

	"github.com/spf13/cobra"
)

func keyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Create, list and revoke API keys; works beside a running server too",
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
				secret, _, err := keys.Create(ctx, name)
				if err == nil {
					fmt.Println(secret)
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
	c.AddCommand(create, list, revoke)
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
