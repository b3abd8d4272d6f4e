package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ashlar/account"
	"ashlar/account/control"
	"ashlar/app"

	"github.com/spf13/cobra"
)

// people is a group of commands that work on the accounts of a data directory.
type people struct{ data string }

// do opens the accounts, beside a running server too, and has something done with them.
func (p *people) do(c *cobra.Command, do func(context.Context, control.Service) error) error {
	if err := need(c, "data", p.data); err != nil {
		return err
	}
	service, closer, err := app.OpenAccounts(c.Context(), p.data)
	if err != nil {
		return err
	}
	return errors.Join(do(c.Context(), service), closer.Close())
}

// changing is a command that changes the key or account that its argument names, and
// prints the ID of that.
func (p *people) changing(use, short string, do func(context.Context, control.Service, string) (fmt.Stringer, error)) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.do(c, func(ctx context.Context, s control.Service) error {
				id, err := do(ctx, s, args[0])
				if err == nil {
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
		Short: "Create, list, restrict, rotate and revoke API keys; works beside a running server too",
	}
	p := new(people)
	c.PersistentFlags().StringVar(&p.data, "data", "", "data directory")
	c.AddCommand(p.createKey(), p.listKeys(), p.restrictKey(), p.expireKey(), p.rotateKey(), p.keyPassword(), p.keyUsage(),
		p.changing("revoke --data DIR ID|NAME", "End a key, at once and for good",
			func(ctx context.Context, s control.Service, key string) (fmt.Stringer, error) {
				k, err := s.Keys.Revoke(ctx, key)
				return k.ID, err
			}))
	return c
}

// createKey makes keys.
func (p *people) createKey() *cobra.Command {
	var n account.NewKey
	var owner string
	var lifetime time.Duration
	c := &cobra.Command{
		Use:   "create --data DIR [--name TEXT]",
		Short: "Make a key and print it: it is shown this once",
		Long: `Makes a key and prints it, the only time that it is shown; with --password a second
line has the password that must come with it by HTTP's Basic authentication.`,
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
	c.Flags().StringVar(&owner, "account", "", "e-mail address or ID of the account that it belongs to (default the operator's)")
	c.Flags().BoolVar(&n.Guarded, "password", false, "make a password too, which must come with the key")
	c.Flags().DurationVar(&lifetime, "expires-in", 0, "time after which the key ends by itself, such as 720h (default never)")
	return c
}

// findAccount returns the ID of an account, named by that or by its e-mail address.
func findAccount(ctx context.Context, accounts control.Accounts, idOrEmail string) (account.ID, error) {
	all, err := accounts.List(ctx)
	if err != nil {
		return account.ID{}, err
	}
	for _, a := range all {
		if a.Email == idOrEmail || a.ID.String() == idOrEmail {
			return a.ID, nil
		}
	}
	return account.ID{}, fmt.Errorf("%w: %q; see ashlar account list", account.ErrNoAccount, idOrEmail)
}

// expireKey sets when a key ends.
func (p *people) expireKey() *cobra.Command {
	var lifetime time.Duration
	c := p.changing("expire --data DIR ID|NAME [--in DURATION]", "Set when a key ends by itself; without --in it does not",
		func(ctx context.Context, s control.Service, key string) (fmt.Stringer, error) {
			var at time.Time
			if lifetime != 0 {
				at = time.Now().Add(lifetime)
			}
			k, err := s.Keys.Expire(ctx, key, at)
			return k.ID, err
		})
	c.Flags().DurationVar(&lifetime, "in", 0, "time until then, such as 720h")
	return c
}

// rotateKey gives a key another text.
func (p *people) rotateKey() *cobra.Command {
	var overlap time.Duration
	c := &cobra.Command{
		Use:   "rotate --data DIR ID|NAME [--overlap DURATION]",
		Short: "Make a new key in place of one, which goes on to work for a while, and print it",
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
	c.Flags().DurationVar(&overlap, "overlap", 0, "time for which the old key works too, such as 24h (default none)")
	return c
}

// keyPassword gives a key a password, or takes it away.
func (p *people) keyPassword() *cobra.Command {
	var remove bool
	c := &cobra.Command{
		Use:   "password --data DIR ID|NAME [--remove]",
		Short: "Make a new password that must come with a key, and print it",
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
				return err
			})
		},
	}
	c.Flags().BoolVar(&remove, "remove", false, "make the key work without one")
	return c
}

// restrictKey gives a key rules.
func (p *people) restrictKey() *cobra.Command {
	var rules account.Rules
	var addresses, contracts []string
	c := p.changing("restrict --data DIR ID|NAME", "Give a key rules in place of those it has; what is left out is not restricted",
		func(ctx context.Context, s control.Service, key string) (fmt.Stringer, error) {
			k, err := s.Keys.Restrict(ctx, key, rules)
			return k.ID, err
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
	c.Flags().StringSliceVar(&rules.Methods, "methods", nil, "names of methods, or beginnings such as eth_*")
	c.Flags().StringSliceVar(&rules.Origins, "origins", nil, "origins of web pages")
	c.Flags().StringSliceVar(&addresses, "addresses", nil, "addresses of clients, or networks of them, such as 192.0.2.7 or 192.0.2.0/24")
	c.Flags().StringSliceVar(&contracts, "contracts", nil, "addresses of contracts that may be called and read")
	c.Flags().Uint32Var(&rules.PerSecond, "per-second", 0, "credits a second (default as the server has it)")
	c.Flags().Uint64Var(&rules.PerDay, "per-day", 0, "credits a day (default as the server has it)")
	return c
}
