package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ashlar/account"
	"ashlar/account/control"

	"github.com/spf13/cobra"
)

func teamCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "team",
		Short: "Manage teams and their members; also works while a server is running",
		Long: `A team has keys, usage and limits of its own, which its members share. It is listed among
the accounts, and limited, disabled and enabled like one: see ashlar account.`,
	}
	p := new(people)
	c.PersistentFlags().StringVar(&p.data, "data", "", "data directory")
	c.PersistentFlags().StringVar(&p.config, "config", "", configUsage)
	c.AddCommand(p.createTeam(), p.listTeams(), p.listMembers(), p.addMember(), p.inviteMember(), p.deleteTeam(),
		p.changingTeam("rename --data DIR TEAM NAME", "Change the name of a team", 2, func(ctx context.Context, s control.Service, team account.ID, args []string) (account.Account, error) {
			return s.Accounts.RenameTeam(ctx, team, args[0])
		}),
		p.changingTeam("role --data DIR TEAM EMAIL|ID owner|member|viewer", "Change the role of a member", 3, func(ctx context.Context, s control.Service, team account.ID, args []string) (account.Account, error) {
			member, err := findAccount(ctx, s.Accounts, args[0])
			if err != nil {
				return account.Account{}, err
			}
			return s.Accounts.SetMemberRole(ctx, team, member, account.TeamRole(args[1]))
		}),
		p.changingTeam("remove --data DIR TEAM EMAIL|ID", "Remove a member at once", 2, func(ctx context.Context, s control.Service, team account.ID, args []string) (account.Account, error) {
			member, err := findAccount(ctx, s.Accounts, args[0])
			if err != nil {
				return account.Account{}, err
			}
			return s.Accounts.RemoveMember(ctx, team, member)
		}))
	return c
}

// changingTeam returns a command that changes the team named by its first argument, given the
// others, and prints its ID.
func (p *people) changingTeam(use, short string, args int, do func(context.Context, control.Service, account.ID, []string) (account.Account, error)) *cobra.Command {
	return &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.ExactArgs(args),
		RunE: func(c *cobra.Command, args []string) error {
			return p.do(c, func(ctx context.Context, s control.Service) error {
				team, err := findTeam(ctx, s.Accounts, args[0])
				if err != nil {
					return err
				}
				changed, err := do(ctx, s, team.ID, args[1:])
				if err == nil {
					fmt.Println(team.ID)
				}
				return unsaved(changed.Unsaved, err)
			})
		},
	}
}

// findTeam returns a team, given its ID, or its name if only one team has it.
func findTeam(ctx context.Context, accounts control.Accounts, idOrName string) (found account.Account, err error) {
	all, err := accounts.List(ctx)
	if err != nil {
		return found, err
	}
	byID := new(account.ID).UnmarshalText([]byte(idOrName)) == nil // never a name, which could be chosen to deceive
	var named []string
	for _, a := range all {
		switch {
		case !a.IsTeam():
		case a.ID.String() == idOrName:
			return a, nil
		case !byID && a.Team == idOrName:
			found = a
			named = append(named, a.ID.String())
		}
	}
	switch len(named) {
	case 0:
		return found, fmt.Errorf("%w: %q; see ashlar team list", account.ErrNoTeam, idOrName)
	case 1:
		return found, nil
	}
	return found, fmt.Errorf("more than one team has the name %q (want one of the IDs %s)", idOrName, strings.Join(named, ", "))
}

func (p *people) createTeam() *cobra.Command {
	var owner string
	c := &cobra.Command{
		Use:   "create --data DIR NAME --owner EMAIL|ID",
		Short: "Create a team with its first owner, and print its ID",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := need(c, "owner", owner); err != nil {
				return err
			}
			return p.do(c, func(ctx context.Context, s control.Service) error {
				id, err := findAccount(ctx, s.Accounts, owner)
				if err != nil {
					return err
				}
				team, err := s.Accounts.CreateTeam(ctx, args[0], id)
				if err == nil {
					fmt.Println(team.ID)
				}
				return err
			})
		},
	}
	c.Flags().StringVar(&owner, "owner", "", "e-mail address or ID of the first owner's account")
	return c
}

func (p *people) listTeams() *cobra.Command {
	return listCommand(p, &cobra.Command{
		Use:   "list --data DIR [--json]",
		Short: "List the teams",
		Args:  cobra.NoArgs,
	}, func(ctx context.Context, s control.Service, _ []string) ([]account.Account, error) {
		all, err := s.Accounts.List(ctx)
		return slices.DeleteFunc(all, func(a account.Account) bool { return !a.IsTeam() }), err
	}, func(ctx context.Context, s control.Service, teams []account.Account) error {
		table := newTable("ID\tNAME\tMEMBERS\tCREATED\tDISABLED")
		for _, t := range teams {
			members, err := s.Accounts.Members(ctx, t.ID)
			number := strconv.Itoa(len(members))
			if errors.Is(err, account.ErrUnreadable) { // ashlar status says why
				number, err = "unknown", nil
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", t.ID, t.Team, number, moment(t.Created), moment(t.Disabled))
		}
		return table.Flush()
	})
}

func (p *people) listMembers() *cobra.Command {
	return listCommand(p, &cobra.Command{
		Use:   "members --data DIR TEAM [--json]",
		Short: "List the members of a team, given by its ID or its name",
		Args:  cobra.ExactArgs(1),
	}, func(ctx context.Context, s control.Service, args []string) ([]account.Member, error) {
		team, err := findTeam(ctx, s.Accounts, args[0])
		if err != nil {
			return nil, err
		}
		return s.Accounts.Members(ctx, team.ID)
	}, func(_ context.Context, _ control.Service, all []account.Member) error {
		table := newTable("ACCOUNT\tE-MAIL\tROLE\tSINCE")
		for _, m := range all {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", m.Account, m.Email, m.Role, moment(m.Since))
		}
		return table.Flush()
	})
}

func (p *people) addMember() *cobra.Command {
	var role account.TeamRole
	c := p.changingTeam("add --data DIR TEAM EMAIL|ID [--role owner|member|viewer]", "Make an account a member of a team", 2,
		func(ctx context.Context, s control.Service, team account.ID, args []string) (account.Account, error) {
			return s.Accounts.AddMember(ctx, team, args[0], role)
		})
	choiceFlag(c, &role, "role", "owner, member or viewer", account.TeamMember, account.TeamOwner, account.TeamViewer)
	return c
}

func (p *people) inviteMember() *cobra.Command {
	n := account.NewInvitation{}
	c := &cobra.Command{
		Use:   "invite --data DIR TEAM [EMAIL] [--role owner|member|viewer] [--valid DURATION]",
		Short: "Create an invitation to a team, and print its token, which is shown only once",
		Long: `Creates an invitation to a team and prints its token; on standard error, a link with it.
It admits one account, which may be created with it; with EMAIL, only that of this address.
ashlar account withdraw ends it.`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 2 {
				n.Email = args[1]
			}
			return p.do(c, func(ctx context.Context, s control.Service) error {
				team, err := findTeam(ctx, s.Accounts, args[0])
				if err != nil {
					return err
				}
				n.Team = team.ID
				return printInvitation(ctx, s, n, "/teams/join")
			})
		},
	}
	choiceFlag(c, &n.TeamRole, "role", "owner, member or viewer", account.TeamMember, account.TeamOwner, account.TeamViewer)
	c.Flags().DurationVar(&n.Valid, "valid", account.DefaultInvitationTime, "how long it is valid")
	return c
}

func (p *people) deleteTeam() *cobra.Command {
	var sure bool
	c := &cobra.Command{
		Use:   "delete --data DIR TEAM --yes",
		Short: "Delete a team with its keys and their usage",
		Long: `Deletes a team with its keys and their usage. The keys stop working at once. The accounts of
its members stay.`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if !sure {
				return fmt.Errorf("%w: the keys of the team %s would stop working for good: give --yes to delete it", errUsage, args[0])
			}
			return p.do(c, func(ctx context.Context, s control.Service) error {
				team, err := findTeam(ctx, s.Accounts, args[0])
				if err != nil {
					return err
				}
				if _, err := s.Accounts.Delete(ctx, team.ID.String()); err != nil {
					return err
				}
				fmt.Println(team.ID)
				return nil
			})
		},
	}
	c.Flags().BoolVar(&sure, "yes", false, "really delete it")
	return c
}
