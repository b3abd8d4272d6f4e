package gateway

import (
	"sync"
	"sync/atomic"
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
	waiting limit.Share // of the light slots, for calls that other servers answer
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
	limits   account.Limits // when the purse was created
	replaced atomic.Bool    // another owner counts for the account
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
	waitingLeaves  int // light slots that calls which other servers answer leave to others

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
	return entry[limit.Holding](&d.holdings, who)
}

// day returns the daily count of a key or an account, by its ID.
func day(all *sync.Map, id any) *limit.Day {
	return entry[limit.Day](all, id)
}

// entry returns the value of a key in a map of *T, to which it adds a zero T if there is none.
func entry[T any](all *sync.Map, key any) *T {
	if found, ok := all.Load(key); ok {
		return found.(*T)
	}
	made, _ := all.LoadOrStore(key, new(T))
	return made.(*T)
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
	if of := key.Account(); of != nil && (who.owner == nil || who.owner.limits != of.Limits || who.owner.replaced.Load()) {
		return nil
	}
	return who
}

// tenantOf returns the tenant of a holder. c.making must be held.
func (c *callers) tenantOf(who holder) *tenant {
	found := c.byHolder[who]
	if found == nil {
		found = &tenant{name: who.name(), holding: c.days.holding(who)}
		found.waiting.Leaves = c.waitingLeaves
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
		if found != nil {
			found.replaced.Store(true)
		}
		standard := of.Limits.PerSecond == 0 && c.accounts.Rate.PerSecond == DefaultAccountRate
		found = &owner{purse: c.purse(c.accounts.with(of.Limits), standard, day(&c.days.accounts, of.ID)), limits: of.Limits}
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

// Restore counts credits that were spent with a key today before this process started. It
// must be called before the handler serves.
func (h *Handler) Restore(key *account.Key, credits uint64) {
	today := h.today()
	day(&h.days.keys, key.ID).Add(today, int(credits))
	if !key.Owner.IsZero() {
		day(&h.days.accounts, key.Owner).Add(today, int(credits))
	}
}
