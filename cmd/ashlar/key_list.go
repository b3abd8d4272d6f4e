package main

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"ashlar/account"
	"ashlar/account/control"
	"ashlar/account/usage"

	"github.com/spf13/cobra"
)

// listedKey is a key with its usage.
type listedKey struct {
	account.Key
	LastUsed time.Time `json:"lastUsed,omitzero"`
}

func (p *people) listKeys() *cobra.Command {
	var owner string
	c := listCommand(p, &cobra.Command{
		Use:   "list --data DIR [--account EMAIL] [--json]",
		Short: "List the keys",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, s control.Service, _ []string) ([]listedKey, error) {
		keys, err := keysOf(ctx, s, owner)
		if err != nil {
			return nil, err
		}
		listed := make([]listedKey, len(keys))
		for i, k := range keys {
			listed[i].Key = k
			if listed[i].LastUsed, err = s.Usage.LastUsed(ctx, k.ID); err != nil {
				return nil, err
			}
		}
		return listed, nil
	}, printKeys)
	c.Flags().StringVar(&owner, "account", "", "only keys of the account with this e-mail address or ID")
	return c
}

// keysOf lists the keys of an account, or all if owner is empty.
func keysOf(ctx context.Context, s control.Service, owner string) ([]account.Key, error) {
	all, err := s.Keys.List(ctx)
	if err != nil || owner == "" {
		return all, err
	}
	id, err := findAccount(ctx, s.Accounts, owner)
	if err != nil {
		return nil, err
	}
	var own []account.Key
	for _, k := range all {
		if k.Owner == id {
			own = append(own, k)
		}
	}
	return own, nil
}

func printKeys(ctx context.Context, s control.Service, keys []listedKey) error {
	all, err := s.Accounts.List(ctx)
	if err != nil {
		return err
	}
	owners := make(map[account.ID]string)
	for _, a := range all {
		owners[a.ID] = a.Label()
	}
	table := newTable("ID\tNAME\tACCOUNT\tCREATED\tLAST USED\tEXPIRES\tREVOKED")
	for _, k := range keys {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, cmp.Or(owners[k.Owner], "-"),
			moment(k.Created), moment(k.LastUsed), moment(k.Expires), moment(k.Revoked))
	}
	return table.Flush()
}

// groupings returns the names of the ways to group usage.
func groupings() map[string]usage.Group {
	return map[string]usage.Group{
		"hour": usage.ByHour, "day": usage.ByDay, "network": usage.ByNetwork, "method": usage.ByMethod, "key": usage.ByKey,
	}
}

func (p *people) keyUsage() *cobra.Command {
	var owner string
	var days int
	var by []string
	var q usage.Query
	c := listCommand(p, &cobra.Command{
		Use:   "usage --data DIR [ID|NAME] [--account EMAIL] [--days N] [--by day,network,method] [--json]",
		Short: "Show the usage of a key, of an account's keys, or of all keys",
		Args:  cobra.MaximumNArgs(1),
		PreRunE: func(*cobra.Command, []string) (err error) {
			q, err = usageQuery(days, by)
			return err
		},
	}, func(ctx context.Context, s control.Service, args []string) ([]usage.Line, error) {
		keys, err := keysOf(ctx, s, owner)
		if err == nil && len(args) == 1 {
			keys, err = onlyKey(keys, args[0])
		}
		if err != nil {
			return nil, err
		}
		if q.All = len(args) == 0 && owner == "" && q.By&usage.ByKey == 0; q.All {
			keys = nil // which need not be named
		}
		for _, k := range keys {
			q.Keys = append(q.Keys, k.ID)
		}
		return s.Usage.Read(ctx, q)
	}, func(_ context.Context, _ control.Service, lines []usage.Line) error { return printUsage(q, lines) })
	c.Flags().StringVar(&owner, "account", "", "only keys of the account with this e-mail address or ID")
	c.Flags().IntVar(&days, "days", 7, "number of days, including today")
	c.Flags().StringSliceVar(&by, "by", []string{"day"}, "group by hour or day, network, method, key")
	return c
}

// maxUsageDays is far longer than usage is kept. Its start is after 1970, as usage queries
// require.
const maxUsageDays = 10_000

// usageQuery returns the query for the last days.
func usageQuery(days int, by []string) (usage.Query, error) {
	if days < 1 || days > maxUsageDays {
		return usage.Query{}, fmt.Errorf("%w: --days %d: expected from 1 to %d", errUsage, days, maxUsageDays)
	}
	now := time.Now().UTC()
	q := usage.Query{From: now.Truncate(24*time.Hour).AddDate(0, 0, 1-days), To: now}
	for _, name := range by {
		group, ok := groupings()[name]
		if !ok {
			return q, fmt.Errorf("%w: --by %s: expected hour, day, network, method or key", errUsage, name)
		}
		q.By |= group
	}
	return q, nil
}

// onlyKey returns the key with an ID, or with a unique name.
func onlyKey(keys []account.Key, idOrName string) ([]account.Key, error) {
	var named []account.Key
	for _, k := range keys {
		if k.ID.String() == idOrName {
			return []account.Key{k}, nil
		}
		if k.Name == idOrName {
			named = append(named, k)
		}
	}
	switch len(named) {
	case 0:
		return nil, fmt.Errorf("%w: no key with the ID or name %q", account.ErrNoKey, idOrName)
	case 1:
		return named, nil
	}
	return nil, fmt.Errorf("%d keys have the name %q: give an ID; see ashlar key list", len(named), idOrName)
}

// printUsage prints a table with a column for each grouping.
func printUsage(q usage.Query, lines []usage.Line) error {
	type column struct {
		heading string
		group   usage.Group
		value   func(usage.Line) string
	}
	layout := time.DateOnly
	if q.By&usage.ByHour != 0 {
		layout = "2006-01-02 15:04"
	}
	columns := []column{
		{"TIME", usage.ByHour | usage.ByDay, func(l usage.Line) string { return l.Time.Format(layout) }},
		{"KEY", usage.ByKey, func(l usage.Line) string { return l.Key.String() }},
		{"NETWORK", usage.ByNetwork, func(l usage.Line) string { return l.Network }},
		{"METHOD", usage.ByMethod, func(l usage.Line) string { return cmp.Or(l.Method, "(none)") }},
	}
	always := []column{
		{"REQUESTS", 0, func(l usage.Line) string { return strconv.FormatUint(l.Requests, 10) }},
		{"ERRORS", 0, func(l usage.Line) string { return strconv.FormatUint(l.Errors, 10) }},
		{"CREDITS", 0, func(l usage.Line) string { return strconv.FormatUint(l.Credits, 10) }},
		{"MEAN", 0, func(l usage.Line) string { return l.Mean().Round(time.Microsecond).String() }},
		{"95 % WITHIN", 0, func(l usage.Line) string { return l.Quantile(0.95).Round(time.Microsecond).String() }},
	}
	var shown []column
	for _, c := range append(columns, always...) {
		if c.group == 0 || q.By&c.group != 0 {
			shown = append(shown, c)
		}
	}
	table := newTable(joined(len(shown), func(i int) string { return shown[i].heading }))
	for _, l := range lines {
		fmt.Fprintln(table, joined(len(shown), func(i int) string { return shown[i].value(l) }))
	}
	return table.Flush()
}
