package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/account/control"
	"ashlar/app/command"

	"github.com/spf13/cobra"
)

// people is the group of commands about the accounts of a data directory.
type people struct{ data, config string }

// do runs a function with the accounts, also while a server is running.
func (p *people) do(c *cobra.Command, do func(context.Context, control.Service) error) error {
	if err := needStores(c, p.data, p.config); err != nil {
		return err
	}
	service, closer, err := command.OpenAccounts(c.Context(), p.data, p.config)
	if err != nil {
		return err
	}
	return errors.Join(do(c.Context(), service), closer.Close())
}

// errUnsaved means that a restriction is in effect in the running server, but a crash would
// undo it.
var errUnsaved = errors.New("in effect, but not yet durable: the store refuses writes, and the server tries again until it accepts them; see ashlar status")

// unsaved returns errUnsaved if a change is not durable.
func unsaved(is bool, err error) error {
	if err == nil && is {
		return errUnsaved
	}
	return err
}

// changedKey is the outcome of a change of a key.
func changedKey(k account.Key, err error) (fmt.Stringer, error) { return k.ID, unsaved(k.Unsaved, err) }

// changedAccount is the outcome of a change of an account.
func changedAccount(a account.Account, err error) (fmt.Stringer, error) {
	return a.ID, unsaved(a.Unsaved, err)
}

// changing returns a command that changes the key or account named by its argument, and
// prints its ID.
func (p *people) changing(use, short string, do func(context.Context, control.Service, string) (fmt.Stringer, error)) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.do(c, func(ctx context.Context, s control.Service) error {
				id, err := do(ctx, s, args[0])
				if err == nil || errors.Is(err, errUnsaved) {
					fmt.Println(id)
				}
				return err
			})
		},
	}
}

func keyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Create, list, restrict, rotate and revoke API keys; also works while a server is running",
	}
	p := new(people)
	c.PersistentFlags().StringVar(&p.data, "data", "", "data directory")
	c.PersistentFlags().StringVar(&p.config, "config", "", configUsage)
	c.AddCommand(p.createKey(), p.listKeys(), p.restrictKey(), p.expireKey(), p.rotateKey(), p.keyPassword(), p.keyUsage(),
		p.changing("revoke --data DIR ID|NAME|KEY", "Revoke a key at once and permanently; the key itself can be given, too",
			func(ctx context.Context, s control.Service, key string) (fmt.Stringer, error) {
				return changedKey(s.Keys.Revoke(ctx, key))
			}))
	return c
}

// createKey returns the command that creates a key.
func (p *people) createKey() *cobra.Command {
	var n account.NewKey
	var owner string
	var lifetime time.Duration
	c := &cobra.Command{
		Use:   "create --data DIR [--name TEXT]",
		Short: "Create a key and print it; it is shown only once",
		Long: `Creates a key and prints it; it is shown only once. With --password, a second line has
the password, which requests must send by HTTP's Basic authentication.`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("expires-in") {
				n.Expires = time.Now().Add(lifetime)
			}
			return p.do(c, func(ctx context.Context, s control.Service) (err error) {
				if owner != "" {
					if n.Owner, err = findAccount(ctx, s.Accounts, owner); err != nil {
						return err
					}
				}
				issued, err := s.Keys.Create(ctx, n)
				if err != nil {
					return err
				}
				fmt.Println(issued.APIKey)
				if n.Guarded {
					fmt.Println(issued.Password)
				}
				return nil
			})
		},
	}
	c.Flags().StringVar(&n.Name, "name", "", "what the key is for")
	c.Flags().StringVar(&owner, "account", "", "e-mail address or ID of the account that owns the key (default: no account)")
	c.Flags().BoolVar(&n.Guarded, "password", false, "also create a password, which requests must send with the key")
	c.Flags().DurationVar(&lifetime, "expires-in", 0, "time after which the key expires, such as 720h (default never)")
	return c
}

// findAccount returns the ID of an account, given its ID or its e-mail address.
func findAccount(ctx context.Context, accounts control.Accounts, idOrEmail string) (account.ID, error) {
	all, err := accounts.List(ctx)
	if err != nil {
		return account.ID{}, err
	}
	for _, a := range all {
		if a.Email != "" && strings.EqualFold(a.Email, idOrEmail) || a.ID.String() == idOrEmail {
			return a.ID, nil
		}
	}
	return account.ID{}, fmt.Errorf("%w: %q; see ashlar account list", account.ErrNoAccount, idOrEmail)
}

// expireKey returns the command that sets when a key expires.
func (p *people) expireKey() *cobra.Command {
	var lifetime time.Duration
	var c *cobra.Command
	c = p.changing("expire --data DIR ID|NAME [--in DURATION]", "Set when a key expires; without --in it never does",
		func(ctx context.Context, s control.Service, key string) (fmt.Stringer, error) {
			var at time.Time
			if c.Flags().Changed("in") {
				at = time.Now().Add(lifetime)
			}
			return changedKey(s.Keys.Expire(ctx, key, at))
		})
	c.Flags().DurationVar(&lifetime, "in", 0, "time until then, such as 720h")
	return c
}

// rotateKey returns the command that replaces a key's secret.
func (p *people) rotateKey() *cobra.Command {
	var overlap time.Duration
	c := &cobra.Command{
		Use:   "rotate --data DIR ID|NAME [--overlap DURATION]",
		Short: "Replace a key and print the new one; the old one can stay valid for a while",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.do(c, func(ctx context.Context, s control.Service) error {
				issued, err := s.Keys.Rotate(ctx, args[0], overlap)
				if err == nil {
					fmt.Println(issued.APIKey)
				}
				return err
			})
		},
	}
	c.Flags().DurationVar(&overlap, "overlap", 0, "time for which the old key stays valid, such as 24h (default none)")
	return c
}

// keyPassword returns the command that sets or removes a key's password.
func (p *people) keyPassword() *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use:   "password --data DIR ID|NAME [--remove]",
		Short: "Set a new password for a key and print it",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.do(c, func(ctx context.Context, s control.Service) error {
				if remove {
					k, err := s.Keys.Unguard(ctx, args[0])
					if err == nil {
						fmt.Println(k.ID)
					}
					return err
				}
				issued, err := s.Keys.Guard(ctx, args[0])
				if err == nil {
					fmt.Println(issued.Password)
				}
				return unsaved(issued.Key.Unsaved, err)
			})
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "remove the password")
	return c
}

// restrictKey returns the command that replaces a key's rules.
func (p *people) restrictKey() *cobra.Command {
	var rules account.Rules
	var addresses, contracts []string
	c := p.changing("restrict --data DIR ID|NAME", "Replace the rules of a key; omitted rules do not restrict it",
		func(ctx context.Context, s control.Service, key string) (fmt.Stringer, error) {
			if err := command.CheckRules(ctx, p.data, p.config, rules); err != nil {
				return nil, fmt.Errorf("%w: %w", errUsage, err)
			}
			return changedKey(s.Keys.Restrict(ctx, key, rules))
		})
	c.Aliases = []string{"limit"}
	c.PreRunE = func(*cobra.Command, []string) error {
		for _, text := range addresses {
			prefix, err := account.ParseAddresses(text)
			if err != nil {
				return fmt.Errorf("%w: --addresses: %w", errUsage, err)
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
		return nil
	}
	c.Flags().StringSliceVar(&rules.Networks, "networks", nil, "names of networks")
	c.Flags().StringSliceVar(&rules.Methods, "methods", nil, "names of methods, or prefixes such as eth_*")
	c.Flags().StringSliceVar(&rules.Origins, "origins", nil, "origins of web pages")
	c.Flags().StringSliceVar(&addresses, "addresses", nil, "client addresses or networks, such as 192.0.2.7 or 192.0.2.0/24")
	c.Flags().StringSliceVar(&contracts, "contracts", nil, "addresses of contracts that may be called and read")
	c.Flags().Uint32Var(&rules.PerSecond, "per-second", 0, "credits per second (default: the server's limit)")
	c.Flags().Uint64Var(&rules.PerDay, "per-day", 0, "credits per day (default: the server's limit)")
	return c
}
