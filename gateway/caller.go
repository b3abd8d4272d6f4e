package gateway

import (
	"net/netip"
	"sync"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/limit"
)

// caller holds what is counted for one key.
type caller struct {
	purse
	*tenant
	usage *usage.Meter
	owner *owner // nil for the operator's keys

	limits account.Limits // from the key's rules, when the purse was created
}

// tenant is the unit among which slots, places in queues and memory are divided evenly. All
// keys of an account share one tenant; a key without an account has its own.
type tenant struct {
	name    any // a string that identifies the tenant to methods, see jsonrpc.CallerKey
	light   limit.Share
	heavy   limit.Share
	holding *limit.Holding
}

// holder identifies a tenant: by account, or by key if it has no account. The other field
// is zero.
type holder struct {
	account account.ID
	key     account.KeyID
}

func holderOf(key *account.Key) holder {
	if key.Owner.IsZero() {
		return holder{key: key.ID}
	}
	return holder{account: key.Owner}
}

// name returns the string that identifies the holder to methods.
func (h holder) name() string {
	if h.account.IsZero() {
		return h.key.String()
	}
	return "account:" + h.account.String()
}

// owner holds what is counted for all keys of one account together, except its tenant.
type owner struct {
	purse
	limits account.Limits // when the purse was created
}

// purse is a budget of credits per second and per day.
type purse struct {
	meter    *limit.Meter
	standard bool // the rate is the default, which does not apply to local clients
	day      *limit.Day
	perDay   uint64 // 0: no limit
}

// rated reports whether the rate applies to a client.
func (p *purse) rated(local bool) bool { return !p.meter.Rate().Unlimited() && !(local && p.standard) }

// callers holds the keys that have been used and their accounts, at most one entry each.
type callers struct {
	keys     KeyLimits
	accounts KeyLimits
	most     int   // credits of the most expensive method: the minimum burst of every rate
	days     *days // kept when limits change
	group    *limit.Group
	usage    *usage.Usage

	heavyOfAccount int // maximum heavy calls of one account at once; 0: no separate limit

	byKey    sync.Map              // *caller by account.KeyID
	making   sync.Mutex            // held while creating one
	byOwner  map[account.ID]*owner // guarded by making
	byHolder map[holder]*tenant    // guarded by making
}

// days holds the credits spent today and the memory in use.
type days struct {
	keys     sync.Map // *limit.Day by account.KeyID
	accounts sync.Map // *limit.Day by account.ID
	holdings sync.Map // *limit.Holding by holder
}

// holding returns the memory held by an account, or by a key without one.
func (d *days) holding(who holder) *limit.Holding {
	if found, ok := d.holdings.Load(who); ok {
		return found.(*limit.Holding)
	}
	made, _ := d.holdings.LoadOrStore(who, new(limit.Holding))
	return made.(*limit.Holding)
}

// day returns the daily count of a key or an account, by its ID.
func day(all *sync.Map, id any) *limit.Day {
	if found, ok := all.Load(id); ok {
		return found.(*limit.Day)
	}
	made, _ := all.LoadOrStore(id, new(limit.Day))
	return made.(*limit.Day)
}

// of returns the caller for a key. A key whose limits have changed keeps the rest of its
// burst, since its owner can change them at will. An account, whose limits only operators
// change, starts with a full burst.
func (c *callers) of(key *account.Key) *caller {
	if who := c.find(key); who != nil {
		return who
	}
	c.making.Lock()
	defer c.making.Unlock()
	if who := c.find(key); who != nil {
		return who
	}
	own, limits := limitsOf(key.Rules), c.keys
	standard := limits.Rate.PerSecond == DefaultRate
	if !key.Owner.IsZero() {
		limits = limits.within(own)
	} else {
		if standard { // the default does not apply to the operator's own keys
			limits.Rate = limit.Rate{}
		}
		limits = limits.with(own)
	}
	standard = standard && limits.Rate == c.keys.Rate
	who := &caller{purse: c.purse(limits, standard, day(&c.days.keys, key.ID)), tenant: c.tenantOf(holderOf(key)), usage: c.usage.Meter(key.ID), limits: own}
	if before, ok := c.byKey.Load(key.ID); ok {
		who.meter = before.(*caller).meter.Next(time.Now(), who.meter.Rate())
	}
	c.group.Join("key "+key.ID.String(), who.meter, who.day)
	if of := key.Account(); of != nil {
		who.owner = c.ownerOf(of)
	}
	c.byKey.Store(key.ID, who)
	return who
}

func (c *callers) find(key *account.Key) *caller {
	found, ok := c.byKey.Load(key.ID)
	if !ok {
		return nil
	}
	who := found.(*caller)
	if who.limits != limitsOf(key.Rules) {
		return nil
	}
	if of := key.Account(); of != nil && (who.owner == nil || who.owner.limits != of.Limits) {
		return nil
	}
	return who
}

// tenantOf returns the tenant of a holder. c.making must be held.
func (c *callers) tenantOf(who holder) *tenant {
	found := c.byHolder[who]
	if found == nil {
		found = &tenant{name: who.name(), holding: c.days.holding(who)}
		if !who.account.IsZero() {
			found.heavy.Most = c.heavyOfAccount
		}
		c.byHolder[who] = found
	}
	return found
}

// ownerOf returns the owner for an account. c.making must be held.
func (c *callers) ownerOf(of *account.Account) *owner {
	found := c.byOwner[of.ID]
	if found == nil || found.limits != of.Limits {
		standard := of.Limits.PerSecond == 0 && c.accounts.Rate.PerSecond == DefaultAccountRate
		found = &owner{c.purse(c.accounts.with(of.Limits), standard, day(&c.days.accounts, of.ID)), of.Limits}
		c.group.Join("account "+of.ID.String(), found.meter, found.day)
		c.byOwner[of.ID] = found
	}
	return found
}

// limitsOf returns the limits in a key's rules.
func limitsOf(rules *account.Rules) account.Limits {
	if rules == nil {
		return account.Limits{}
	}
	return account.Limits{PerSecond: rules.PerSecond, PerDay: rules.PerDay}
}

// with returns l, overridden by the limits that an operator has set for one key or account.
func (l KeyLimits) with(own account.Limits) KeyLimits {
	if own.PerSecond > 0 {
		l.Rate = PerSecond(float64(own.PerSecond))
	}
	if own.PerDay > 0 {
		l.PerDay = own.PerDay
	}
	return l
}

// within returns l, lowered to the limits that the owner of a key has set.
func (l KeyLimits) within(own account.Limits) KeyLimits {
	if !l.Rate.Unlimited() && float64(own.PerSecond) >= l.Rate.PerSecond {
		own.PerSecond = 0
	}
	if l.PerDay > 0 && own.PerDay >= l.PerDay {
		own.PerDay = 0
	}
	return l.with(own)
}

// PerSecond returns a rate of credits with a burst of two seconds' worth; 0 means no limit.
func PerSecond(credits float64) limit.Rate {
	const saved = 2 // seconds
	return limit.Rate{PerSecond: credits, Burst: max(1, int(saved*credits))}
}

func (c *callers) purse(l KeyLimits, standard bool, of *limit.Day) purse {
	l.Rate.Burst = max(l.Rate.Burst, c.most)
	return purse{limit.NewMeter(l.Rate), standard, of, l.PerDay}
}

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
		all[2] = rate{p.address, "request rate of the address exceeded"}
	}
	return all
}

// unlimited reports whether neither a rate nor a quota applies to a payer.
func (p *payer) unlimited() bool {
	owner := p.caller.owner
	return p.address == nil && !p.caller.rated(p.local) && p.caller.perDay == 0 && (owner == nil || !owner.rated(p.local) && owner.perDay == 0)
}

// spend charges credits, or returns a refusal if a limit is exceeded.
func (p *payer) spend(credits int) *refusal {
	if p.unlimited() {
		return nil
	}
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
	if p.unlimited() {
		return nil
	}
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
	p.caller.owe(today, credits)
	if p.caller.owner != nil {
		p.caller.owner.owe(today, credits)
	}
}

// owe takes credits from the daily quota, even if they exceed it.
func (p *purse) owe(today time.Time, credits int) {
	if p.perDay > 0 {
		p.day.Add(today, credits)
	}
}

// spendDays takes credits from the daily quotas of both a key and its account, or from
// neither.
func (s *settings) spendDays(who *caller, credits int) *refusal {
	if who.perDay == 0 && (who.owner == nil || who.owner.perDay == 0) {
		return nil
	}
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
	if p.perDay == 0 {
		return nil
	}
	wait, ok := p.day.Spend(today, credits, p.perDay)
	if ok {
		return nil
	}
	return overQuota(message, spentDay{See: s.see, Used: p.day.Used(today), Asked: credits, Allowed: p.perDay}, wait)
}

// giveBack returns the credits of a call that found no place in the queue to the daily
// quotas, but not to the rates, so that a client cannot retry at any speed.
func (p *payer) giveBack(credits int) {
	who, today := p.caller, p.settings.today()
	if who.perDay > 0 {
		who.day.Return(today, credits)
	}
	if who.owner != nil && who.owner.perDay > 0 {
		who.owner.day.Return(today, credits)
	}
}

// Restore counts credits that were spent with a key today before this process started. It
// must be called before the handler serves.
func (h *Handler) Restore(key *account.Key, credits uint64) {
	today := h.today()
	day(&h.days.keys, key.ID).Add(today, int(credits))
	if !key.Owner.IsZero() {
		day(&h.days.accounts, key.Owner).Add(today, int(credits))
	}
}
