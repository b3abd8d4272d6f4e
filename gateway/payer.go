package gateway

import (
	"net/netip"
	"time"

	"ashlar/account"
	"ashlar/limit"
)

// payer is charged for what a client requests.
type payer struct {
	settings *settings
	caller   *caller
	local    bool         // default limits do not apply to the client
	address  *limit.Meter // of the client; nil: no limit
}

// payer returns the payer of requests with a key from a client.
func (s *settings) payer(key *account.Key, client netip.Addr) payer {
	p := payer{settings: s, caller: s.callers.of(key), local: s.local(client)}
	if s.addressRate.PerSecond > 0 && !(p.local && s.addressRate.PerSecond == DefaultAddressRate) {
		p.address = s.clients.Meter(client)
	}
	return p
}

// rate is one of the rates that apply to a payer.
type rate struct {
	meter  *limit.Meter // nil: does not apply
	reason string
}

// rates returns the rates of the key, the account and the address.
func (p *payer) rates() (all [3]rate) {
	if p.caller.rated(p.local) {
		all[0] = rate{p.caller.meter, "request rate exceeded"}
	}
	if owner := p.caller.owner; owner != nil && owner.rated(p.local) {
		all[1] = rate{owner.meter, "request rate of the account exceeded"}
	}
	if p.address != nil {
		all[2] = rate{p.address, addressExceeded}
	}
	return all
}

const addressExceeded = "request rate of the address exceeded"

// spend charges credits, or returns a refusal if a limit is exceeded.
func (p *payer) spend(credits int) *refusal {
	now, rates := time.Now(), p.rates()
	for i, r := range rates {
		if r.meter == nil {
			continue
		}
		if excess, ok := r.meter.Spend(now, credits); !ok {
			returnTo(rates[:i], credits)
			return tooFast(RefusedRate, r.reason, p.settings.see, excess)
		}
	}
	refused := p.settings.spendDays(p.caller, credits)
	if refused != nil {
		returnTo(rates[:], credits)
	}
	return refused
}

// spendAddress charges credits to the client's address alone, or returns a refusal if its rate is
// exceeded.
func (p *payer) spendAddress(credits int) *refusal {
	if p.address == nil {
		return nil
	}
	if excess, ok := p.address.Spend(time.Now(), credits); !ok {
		return tooFast(RefusedRate, addressExceeded, p.settings.see, excess)
	}
	return nil
}

// returnTo gives back the credits of a call that another limit has refused: others share these
// rates.
func returnTo(rates []rate, credits int) {
	for _, r := range rates {
		if r.meter != nil {
			r.meter.Return(credits)
		}
	}
}

// maxDebt is the longest a client may have to wait before it can pay for the messages of
// its subscriptions.
const maxDebt = 10 * time.Second

// spendOnMessage charges for a message of a subscription, or returns a refusal. Because the
// client does not choose when messages arrive, it may owe as many credits as its rates
// allow in maxDebt.
func (p *payer) spendOnMessage(credits int) *refusal {
	now, rates := time.Now(), p.rates()
	for _, r := range rates {
		if r.meter == nil {
			continue
		}
		if excess, ok := r.meter.Spend(now, 0); !ok && excess.Wait > maxDebt {
			return tooFast(RefusedRate, r.reason, p.settings.see, excess)
		}
	}
	if r := p.settings.spendDays(p.caller, credits); r != nil {
		return r
	}
	for _, r := range rates {
		if r.meter != nil {
			r.meter.Owe(now, credits)
		}
	}
	return nil
}

// owe charges for work that is already done, even if that exceeds a limit. The next request
// waits until the debt is paid.
func (p *payer) owe(credits int) {
	now := time.Now()
	for _, r := range p.rates() {
		if r.meter != nil {
			r.meter.Owe(now, credits)
		}
	}
	today := p.settings.today()
	p.caller.day.Add(today, credits)
	if p.caller.owner != nil {
		p.caller.owner.day.Add(today, credits)
	}
}

// spendDays takes credits from the daily quotas of both a key and its account, or from
// neither. Without a quota, credits are counted too: one may be set later that day.
func (s *settings) spendDays(who *caller, credits int) *refusal {
	today := s.today()
	if who.owner == nil {
		return s.spendDay(&who.purse, today, credits, "daily quota exceeded")
	}
	if r := s.spendDay(&who.owner.purse, today, credits, "daily quota of the account exceeded"); r != nil {
		return r
	}
	r := s.spendDay(&who.purse, today, credits, "daily quota exceeded")
	if r != nil {
		who.owner.day.Return(today, credits)
	}
	return r
}

// spendDay takes credits from a daily quota, or returns a refusal.
func (s *settings) spendDay(p *purse, today time.Time, credits int, message string) *refusal {
	wait, ok := p.day.Spend(today, credits, p.perDay)
	if ok {
		return nil
	}
	return overQuota(message, spentDay{See: s.see, Used: p.day.Used(today), Asked: credits, Allowed: p.perDay}, wait)
}

// charge charges the price of a call. It keeps the time for giveBack.
func (e *exchange) charge(credits int) *refusal {
	e.charged = e.settings.today()
	return e.spend(credits)
}

// giveBack returns the credits of a call that found no place in the queue to the daily
// quotas, but not to the rates, so that a client cannot retry at any speed.
func (e *exchange) giveBack() {
	e.caller.day.Return(e.charged, e.credits)
	if owner := e.caller.owner; owner != nil {
		owner.day.Return(e.charged, e.credits)
	}
}
