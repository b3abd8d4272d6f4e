package main

import (
	"context"
	"encoding/json"
	"fmt"
	"text/tabwriter"
	"time"

	"ashlar/account/control"

	"github.com/spf13/cobra"
)

// listCommand returns a command that prints what get lists: with --json as JSON, else by table.
func listCommand[T any](p *people, c *cobra.Command, get func(ctx context.Context, s control.Service, args []string) ([]T, error),
	table func(ctx context.Context, s control.Service, all []T) error) *cobra.Command {
	var asJSON bool
	c.RunE = func(c *cobra.Command, args []string) error {
		return p.do(c, func(ctx context.Context, s control.Service) error {
			all, err := get(ctx, s, args)
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(append([]T{}, all...)) // an empty list is [], not null
			}
			return table(ctx, s, all)
		})
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// printJSON prints a value as indented JSON.
func printJSON(what any) error {
	encoder := json.NewEncoder(stdout())
	encoder.SetIndent("", "  ")
	return encoder.Encode(what)
}

// newTable starts a table with headings.
func newTable(headings string) *tabwriter.Writer {
	table := tabwriter.NewWriter(stdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, headings)
	return table
}

// moment formats a time for a table; "-" if it is zero.
func moment(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.DateTime)
}

// joined joins the cells of a table row.
func joined(n int, cell func(int) string) (row string) {
	for i := range n {
		if i > 0 {
			row += "\t"
		}
		row += cell(i)
	}
	return row
}
