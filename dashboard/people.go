package dashboard

import (
	"time"

	"ashlar/account"
)

// peoplePage is the data of the template people.
type peoplePage struct {
	People       []personLine
	Registration string
}

type personLine struct {
	Account account.Account
	Keys    int // usable ones
	Limits  string
}

func (v *visit) people() error {
	config := &v.dashboard.config
	accounts, err := config.Accounts.List(v.r.Context())
	if err != nil {
		return err
	}
	keys, err := config.Keys.List(v.r.Context())
	if err != nil {
		return err
	}
	live, now := make(map[account.ID]int), time.Now()
	for _, k := range keys {
		if !k.Ended(now) {
			live[k.Owner]++
		}
	}
	p := peoplePage{Registration: registrationName(config.Accounts.Registration())}
	for _, a := range accounts {
		p.People = append(p.People, personLine{a, live[a.ID], accountLimits(a.Limits)})
	}
	return v.show(200, "people", "Accounts", p)
}

func registrationName(r account.Registration) string {
	switch r {
	case account.RegistrationOpen:
		return "open"
	case account.RegistrationInvited:
		return "by invitation"
	}
	return "closed"
}
