package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"ashlar/account"
	"ashlar/account/control"

	"github.com/spf13/cobra"
)

func accountCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "account",
		Short: "Manage accounts and invitations; also works while a server is running",
	}
	p := new(people)
	c.PersistentFlags().StringVar(&p.data, "data", "", "data directory")
	c.PersistentFlags().StringVar(&p.config, "config", "", configUsage)
	c.AddCommand(p.createAccount(), p.listAccounts(), p.resetAccount(), p.setRole(), p.setLimits(), p.deleteAccount(), p.invite(), p.listInvitations(),
		p.changing("disable --data DIR EMAIL|ID", "Disable an account and its keys at once",
			func(ctx context.Context, s control.Service, who string) (fmt.Stringer, error) {
				return changedAccount(s.Accounts.Disable(ctx, who))
			}),
		p.changing("enable --data DIR EMAIL|ID", "Enable a disabled account",
			func(ctx context.Context, s control.Service, who string) (fmt.Stringer, error) {
				return changedAccount(s.Accounts.Enable(ctx, who))
			}),
		p.changing("reset-factor --data DIR EMAIL|ID", "Remove an account's second factor, whose device is lost, and end its sessions",
			func(ctx context.Context, s control.Service, who string) (fmt.Stringer, error) {
				return changedAccount(s.Accounts.ResetFactor(ctx, who))
			}),
		p.changing("withdraw --data DIR ID", "End an invitation",
			func(ctx context.Context, s control.Service, id string) (fmt.Stringer, error) {
				i, err := s.Accounts.Withdraw(ctx, id)
				return text(i.ID), unsaved(i.Unsaved, err)
			}))
	return c
}

// text is a string that implements fmt.Stringer.
type text string

func (t text) String() string { return string(t) }

func (p *people) createAccount() *cobra.Command {
	var n account.NewAccount
	c := &cobra.Command{
		Use:   "create --data DIR EMAIL [--role operator]",
		Short: "Create an account, and print a token and a link to set its password",
		Long: `Creates an account without a password, and prints a token to set one in the
dashboard, once and within a day; on standard error, it prints a link with the token
too. The token is shown only once.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			n.Email = args[0]
			return p.do(c, func(ctx context.Context, s control.Service) error {
				token, _, err := s.Accounts.Create(ctx, n)
				if err != nil {
					return err
				}
				fmt.Println(token)
				return printLink(ctx, s, "/reset?token="+token)
			})
		},
	}
	choiceFlag(c, &n.Role, "role", "user or operator", account.RoleUser, account.RoleOperator)
	return c
}

// printLink prints a link to a page of the dashboard, if there is one, on standard error.
func printLink(ctx context.Context, s control.Service, page string) error {
	base, err := s.Dashboard(ctx)
	if err == nil && base != "" {
		fmt.Fprintln(os.Stderr, "link:", base+page)
	}
	return err
}

func (p *people) listAccounts() *cobra.Command {
	return listCommand(p, &cobra.Command{
		Use:   "list --data DIR [--json]",
		Short: "List the accounts",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, s control.Service, _ []string) ([]account.Account, error) {
		return s.Accounts.List(ctx)
	}, func(_ context.Context, _ control.Service, all []account.Account) error {
		table := newTable("ID\tE-MAIL OR TEAM\tROLE\tCREATED\tDISABLED\tCREDITS A SECOND\tCREDITS A DAY\tKEYS")
		for _, a := range all {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", a.ID, a.Label(), kindOf(&a), moment(a.Created), moment(a.Disabled),
				limitText(uint64(a.Limits.PerSecond)), limitText(a.Limits.PerDay), limitText(uint64(a.Limits.Keys)))
		}
		return table.Flush()
	})
}

// kindOf returns the role of an account; that of a team is "team".
func kindOf(a *account.Account) string {
	if a.IsTeam() {
		return "team"
	}
	return string(a.Role)
}

// limitText formats a limit for a table; "-" if the server's default applies.
func limitText(n uint64) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func (p *people) resetAccount() *cobra.Command {
	return &cobra.Command{
		Use:   "reset --data DIR EMAIL|ID",
		Short: "Print a token to set a new password for an account",
		Long: `Prints a token to set a new password in the dashboard, once and within a day. An
earlier token becomes invalid. Setting the password ends all sessions of the account;
until then the old password works.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return p.do(c, func(ctx context.Context, s control.Service) error {
				token, until, err := s.Accounts.Reset(ctx, args[0])
				if err != nil {
					return err
				}
				fmt.Println(token)
				fmt.Fprintln(os.Stderr, "valid until", until.UTC().Format(time.DateTime), "UTC")
				return printLink(ctx, s, "/reset?token="+token)
			})
		},
	}
}

func (p *people) setRole() *cobra.Command {
	return &cobra.Command{
		Use:   "role --data DIR EMAIL|ID user|operator",
		Short: "Change what an account may do",
		Args:  cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return p.do(c, func(ctx context.Context, s control.Service) error {
				a, err := s.Accounts.SetRole(ctx, args[0], account.Role(args[1]))
				if err == nil {
					fmt.Println(a.ID)
				}
				return unsaved(a.Unsaved, err)
			})
		},
	}
}

func (p *people) setLimits() *cobra.Command {
	var limits account.Limits
	c := p.changing("limit --data DIR EMAIL|ID", "Replace the limits of an account; omitted ones get the server's defaults",
		func(ctx context.Context, s control.Service, who string) (fmt.Stringer, error) {
			return changedAccount(s.Accounts.SetLimits(ctx, who, limits))
		})
	c.Flags().Uint32Var(&limits.PerSecond, "per-second", 0, "credits per second for all keys of the account together")
	c.Flags().Uint64Var(&limits.PerDay, "per-day", 0, "credits per day for all keys of the account together")
	c.Flags().Uint32Var(&limits.Keys, "keys", 0, "maximum number of live keys")
	return c
}

func (p *people) deleteAccount() *cobra.Command {
	var sure bool
	c := &cobra.Command{
		Use:   "delete --data DIR EMAIL|ID --yes",
		Short: "Delete an account with its keys and their usage",
		Long: `Deletes an account with its keys, their usage, its sessions and tokens. The keys stop
working at once. The audit log keeps that the account was deleted, and backups that were
made earlier still have it.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !sure {
				return fmt.Errorf("%w: the keys of the account %s would stop working for good: give --yes to delete it", errUsage, args[0])
			}
			return p.do(c, func(ctx context.Context, s control.Service) error {
				a, err := s.Accounts.Delete(ctx, args[0])
				if err == nil {
					fmt.Println(a.ID)
				}
				return err
			})
		},
	}
	c.Flags().BoolVar(&sure, "yes", false, "really delete it")
	return c
}

func (p *people) invite() *cobra.Command {
	var n account.NewInvitation
	c := &cobra.Command{
		Use:   "invite --data DIR [EMAIL] [--role operator] [--valid DURATION]",
		Short: "Create an invitation, and print its token, which is shown only once",
		Long: `Creates an invitation and prints its token, which creates one account in the dashboard;
with EMAIL, only for that address.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 1 {
				n.Email = args[0]
			}
			return p.do(c, func(ctx context.Context, s control.Service) error {
				return printInvitation(ctx, s, n, "/signup")
			})
		},
	}
	choiceFlag(c, &n.Role, "role", "user or operator", account.RoleUser, account.RoleOperator)
	c.Flags().DurationVar(&n.Valid, "valid", account.DefaultInvitationTime, "how long it is valid")
	return c
}

// printInvitation creates an invitation and prints its token; on standard error, when it ends and a link to the page
// that takes it.
func printInvitation(ctx context.Context, s control.Service, n account.NewInvitation, page string) error {
	token, i, err := s.Accounts.Invite(ctx, n)
	if err != nil {
		return err
	}
	fmt.Println(token)
	fmt.Fprintln(os.Stderr, "invitation", i.ID, "is valid until", i.Expires.UTC().Format(time.DateTime), "UTC")
	return printLink(ctx, s, page+"?invitation="+token)
}

func (p *people) listInvitations() *cobra.Command {
	return listCommand(p, &cobra.Command{
		Use:   "invitations --data DIR [--json]",
		Short: "List the invitations, newest first",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, s control.Service, _ []string) ([]account.Invitation, error) {
		return s.Accounts.Invitations(ctx)
	}, func(_ context.Context, _ control.Service, all []account.Invitation) error {
		table := newTable("ID\tE-MAIL\tROLE\tCREATED\tEXPIRES\tSTATE")
		for _, i := range all {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", i.ID, cmp.Or(i.Email, "-"), invitedAs(&i), moment(i.Created), moment(i.Expires), invitationState(i))
		}
		return table.Flush()
	})
}

// invitedAs returns the role that an invitation gives; for one to a team with its ID.
func invitedAs(i *account.Invitation) string {
	if i.Team.IsZero() {
		return string(i.Role)
	}
	return string(i.TeamRole) + " of " + i.Team.String()
}

func invitationState(i account.Invitation) string {
	switch {
	case !i.UsedBy.IsZero():
		return "used by " + i.UsedBy.String()
	case !i.Withdrawn.IsZero():
		return "withdrawn"
	case !i.Open(time.Now()):
		return "expired"
	}
	return "open"
}
