package gateway

import (
	"time"

	"ashlar/account"
)

// Allowance returns the limits of credits that apply to requests with a key from other
// machines. The key must have been returned by the Keyring.
func (h *Handler) Allowance(key *account.Key) (a account.Allowance) {
	s, now := h.current.Load(), time.Now()
	who := s.callers.of(key)
	add := func(p *purse, set account.Limits, own, standard account.LimitSource) {
		if rate := p.meter.Rate(); !rate.Unlimited() {
			a.PerSecond = append(a.PerSecond, account.Bound{Source: sourceOf(float64(set.PerSecond) == rate.PerSecond, own, standard), Credits: rate.PerSecond, Used: p.meter.Recent(now)})
		}
		if p.perDay > 0 {
			a.PerDay = append(a.PerDay, account.Bound{Source: sourceOf(set.PerDay == p.perDay, own, standard), Credits: float64(p.perDay), Used: float64(p.day.Used(h.today()))})
		}
	}
	add(&who.purse, who.limits, account.KeyRule, account.KeyDefault)
	if owner := who.owner; owner != nil {
		add(&owner.purse, owner.limits, account.AccountLimit, account.AccountDefault)
	}
	if s.addressRate.PerSecond > 0 {
		a.PerSecond = append(a.PerSecond, account.Bound{Source: account.AddressDefault, Credits: s.addressRate.PerSecond})
	}
	return a
}

func sourceOf(isOwn bool, own, standard account.LimitSource) account.LimitSource {
	if isOwn {
		return own
	}
	return standard
}
