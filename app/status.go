package app

import (
	"context"
	"fmt"
	"time"

	"ashlar/account"
	"ashlar/family"
)

// Status is the status of the networks.
type Status struct {
	Networks []family.Status `json:"networks"`
	// Unserved are the networks that a command must complete before they can be served.
	Unserved []Unserved `json:"unserved,omitempty"`
	// AccountsRefused is why the accounts' store refuses writes; empty if it does not.
	AccountsRefused string `json:"accountsRefused,omitempty"`
	// AccountsUnsaved are restrictions that are in effect but not durable; nil: none.
	AccountsUnsaved *account.Unsaved `json:"accountsUnsaved,omitempty"`
	// MailProblem is why e-mails cannot be sent; empty if they can.
	MailProblem string `json:"mailProblem,omitempty"`
	// AccountsUnreadable are the keys, accounts and invitations that are disabled because
	// their rows cannot be read.
	AccountsUnreadable []string `json:"accountsUnreadable,omitempty"`
	// Process is the server's; nil if none is running.
	Process *Process `json:"process,omitempty"`
}

func (s *Service) status(ctx context.Context) (any, error) {
	all := Status{Process: s.process(), Unserved: s.unserved(ctx)}
	if refused := s.accountsRefused(); refused != nil {
		all.AccountsRefused = refused.Error()
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
			return nil, err
		}
		if err := notReady(&one, s.current.Load().Networks[n.Name].Behind, time.Now()); err != nil {
			one.NotReady = err.Error()
		}
		all.Networks = append(all.Networks, one)
	}
	return all, nil
}
