package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ashlar/account"
	"ashlar/app"
)

// CheckRules returns what a key's rules name that does not exist: networks that are neither
// stored nor served, and methods that no family has. The stores are those of a data
// directory, or those that a configuration file names.
func CheckRules(ctx context.Context, data, file string, rules account.Rules) error {
	var problems []error
	if len(rules.Networks) > 0 {
		known, err := knownNetworks(ctx, data, file)
		if err != nil {
			return err
		}
		for _, name := range rules.Networks {
			if !slices.Contains(known, name) {
				problems = append(problems, fmt.Errorf("unknown network %q (want %s)", name, oneOf(known)))
			}
		}
	}
	if len(rules.Methods) > 0 {
		known, err := app.Families().Methods()
		if err != nil {
			return err
		}
		for _, rule := range rules.Methods {
			one := account.Rules{Methods: []string{rule}}
			if !slices.ContainsFunc(known, one.AllowsMethod) {
				problems = append(problems, fmt.Errorf("unknown method %q (want one of docs/methods.md, or the beginning of one and *)", rule))
			}
		}
	}
	return errors.Join(problems...)
}

// knownNetworks lists the networks that are stored, and those that a running server serves.
func knownNetworks(ctx context.Context, data, file string) (names []string, err error) {
	stores, c, err := openStores(ctx, data, file, true)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stores.Close()) }()
	if names, err = stores.List(ctx); err != nil {
		return nil, err
	}
	running, _, err := serverStatus(ctx, c.Data)
	if err != nil {
		return nil, err
	}
	names = append(names, running.Served()...)
	slices.Sort(names)
	return slices.Compact(names), nil
}

func oneOf(names []string) string {
	if len(names) == 0 {
		return "one that was imported; there is none"
	}
	return strings.Join(names, ", ")
}
