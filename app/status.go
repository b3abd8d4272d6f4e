package app

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ashlar/account"
	"ashlar/family"
)

// Status is the status of the networks.
type Status struct {
	Networks []family.Status `json:"networks"`
	// Unserved are the networks that are left out, until a command completes them or their stores open.
	Unserved []Unserved `json:"unserved,omitempty"`
	// Unreadable are the networks whose status cannot be read.
	Unreadable []Unreadable `json:"unreadable,omitempty"`
	// AccountsRefused is why the accounts' store refuses writes; empty if it does not.
	AccountsRefused string `json:"accountsRefused,omitempty"`
	// AccountsUnread is why changes of accounts and keys are not exchanged with other processes; empty if they are.
	AccountsUnread string `json:"accountsUnread,omitempty"`
	// AccountsUnsaved are restrictions that are in effect but not durable; nil: none.
	AccountsUnsaved *account.Unsaved `json:"accountsUnsaved,omitempty"`
	// ScriptsProblem is why processes for clients' scripts cannot be started; empty if they can.
	ScriptsProblem string `json:"scriptsProblem,omitempty"`
	// MailProblem is why e-mails cannot be sent; empty if they can.
	MailProblem string `json:"mailProblem,omitempty"`
	// AccountsUnreadable are the keys, accounts and invitations that are disabled because
	// their rows cannot be read.
	AccountsUnreadable []string `json:"accountsUnreadable,omitempty"`
	// Process is the server's; nil if none is running.
	Process *Process `json:"process,omitempty"`
	// NoServer says that no server answered for the data directory, so this is what its stores hold.
	NoServer bool `json:"-"`
}

// Unreadable is a network whose status cannot be read.
type Unreadable struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// NewUnreadable describes a network whose status cannot be read because of err.
func NewUnreadable(name string, err error) Unreadable {
	return Unreadable{Name: name, Why: strings.TrimPrefix(err.Error(), "network "+name+": ")}
}

func (u Unreadable) String() string {
	return fmt.Sprintf("network %s cannot be read: %s", u.Name, u.Why)
}

// Served returns the names of the networks that the server serves, whether or not their status
// can be read.
func (s *Status) Served() (names []string) {
	for i := range s.Networks {
		names = append(names, s.Networks[i].Name)
	}
	for _, u := range s.Unreadable {
		names = append(names, u.Name)
	}
	return names
}

// Err returns how many networks cannot be read, nil if all can.
func (s *Status) Err() error {
	unread := len(s.Unreadable)
	for _, u := range s.Unserved {
		if u.Failed {
			unread++
		}
	}
	if unread == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d networks cannot be read", unread, len(s.Networks)+len(s.Unserved)+len(s.Unreadable))
}

func (s *Service) status(ctx context.Context) (any, error) {
	all := Status{Networks: []family.Status{}, Process: s.process(), Unserved: s.Unserved(ctx)}
	if refused := s.accountsRefused(); refused != nil {
		all.AccountsRefused = refused.Error()
	}
	if why := s.people.unreadChanges(); why != nil {
		all.AccountsUnread = why.Error()
	}
	if why := s.workersProblem(); why != nil {
		all.ScriptsProblem = why.Error()
	}
	if s.mail != nil {
		if since, err := s.mail.Problem(); err != nil {
			all.MailProblem = fmt.Sprintf("since %s: %v", since.UTC().Format(time.RFC3339), err)
		}
	}
	all.AccountsUnsaved, all.AccountsUnreadable = s.accounts.Unsaved(), s.accounts.Unreadable()
	for n := range s.asked() {
		one, err := n.Status(ctx)
		if err != nil {
			all.Unreadable = append(all.Unreadable, NewUnreadable(n.Name, err))
			continue
		}
		if err := notReady(&one, s.current.Load().Networks[n.Name].Behind, time.Now()); err != nil {
			one.NotReady = err.Error()
		}
		all.Networks = append(all.Networks, one)
	}
	return all, nil
}
