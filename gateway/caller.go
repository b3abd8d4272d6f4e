package gateway

import (
	"sync"
	"time"

	"ashlar/account"
	"ashlar/account/usage"
	"ashlar/limit"
)

// caller is what is counted of one key.
type caller struct {
	purse
	light   limit.Share
	heavy   limit.Share
	holding limit.Holding
	usage   *usage.Meter
	owner   *owner // nil where the key is the operator's

	limits account.Limits // of the key's rules, that the purse was made for
}

// owner is what is counted of one account: of all its keys together.
type owner struct {
	purse
	limits account.Limits // that the purse was made for
}

// purse is what may be spent, by the second and by the day.
type purse struct {
	meter  *limit.Meter
	day    *limit.Day
	perDay uint64 // 0: no limit
}

func (p *purse) unlimited() bool { return p.perDay == 0 && p.meter.Rate().Unlimited() }

// callers are the keys that have been used, and their accounts. There are never more
// than exist.
type callers struct {
	keys     KeyLimits
	accounts KeyLimits
	most     int   // credits of the dearest method: whoever may spend at all may call it
	days     *days // outlive a change of limits
	usage    *usage.Usage

	byKey   sync.Map              // *caller by account.KeyID
	making  sync.Mutex            // held while one is made
	byOwner map[account.ID]*owner // guarded by making
}

// days are what was spent of the present day.
type days struct {
	keys     sync.Map // *limit.Day by account.KeyID
	accounts sync.Map // *limit.Day by account.ID
}

// day returns what one has spent of its day, by its ID.
func day(all *sync.Map, id any) *limit.Day {
	if found, ok := all.Load(id); ok {
		return found.(*limit.Day)
	}
	made, _ := all.LoadOrStore(id, new(limit.Day))
	return made.(*limit.Day)
}

// of returns the caller that a key stands for. One whose limits were changed goes on with
// what it had left, as whoever owns a key can change them as often as they like; those of
// its account, which operators change, begin with a full burst.
func (c *callers) of(key *account.Key) *caller {
	if who := c.find(key); who != nil {
		return who
	}
	c.making.Lock()
	defer c.making.Unlock()
	if who := c.find(key); who != nil {
		return who
	}
	own := limitsOf(key.Rules)
	limits := c.keys.with(own)
	if !key.Owner.IsZero() {
		limits = c.keys.within(own)
	}
	who := &caller{purse: c.purse(limits, day(&c.days.keys, key.ID)), usage: c.usage.Meter(key.ID), limits: own}
	if before, ok := c.byKey.Load(key.ID); ok {
		who.meter = before.(*caller).meter.Next(time.Now(), who.meter.Rate())
	}
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

// ownerOf returns what is counted of an account. c.making is held.
func (c *callers) ownerOf(of *account.Account) *owner {
	found := c.byOwner[of.ID]
	if found == nil || found.limits != of.Limits {
		limits := c.accounts.with(of.Limits)
		found = &owner{c.purse(limits, day(&c.days.accounts, of.ID)), of.Limits}
		c.byOwner[of.ID] = found
	}
	return found
}

// limitsOf are the limits in a key's rules.
func limitsOf(rules *account.Rules) account.Limits {
	if rules == nil {
		return account.Limits{}
	}
	return account.Limits{PerSecond: rules.PerSecond, PerDay: rules.PerDay}
}

// with returns limits in which own ones take the place of l's, if they are given: those
// that an operator has set.
func (l KeyLimits) with(own account.Limits) KeyLimits {
	if own.PerSecond > 0 {
		l.Rate = PerSecond(float64(own.PerSecond))
	}
	if own.PerDay > 0 {
		l.PerDay = own.PerDay
	}
	return l
}

// within returns limits in which own ones count where they are less than l's: those that
// somebody has set who must not lift l's.
func (l KeyLimits) within(own account.Limits) KeyLimits {
	if !l.Rate.Unlimited() && float64(own.PerSecond) >= l.Rate.PerSecond {
		own.PerSecond = 0
	}
	if l.PerDay > 0 && own.PerDay >= l.PerDay {
		own.PerDay = 0
	}
	return l.with(own)
}

// PerSecond is a rate of credits, of which those of two seconds can be saved up; 0: no
// limit.
func PerSecond(credits float64) limit.Rate {
	const saved = 2 // seconds
	return limit.Rate{PerSecond: credits, Burst: max(1, int(saved*credits))}
}

func (c *callers) purse(l KeyLimits, of *limit.Day) purse {
	l.Rate.Burst = max(l.Rate.Burst, c.most)
	return purse{limit.NewMeter(l.Rate), of, l.PerDay}
}

// spend takes a call's credits, or says why there are none.
func (s *settings) spend(who *caller, credits int) *refusal {
	if who.unlimited() && (who.owner == nil || who.owner.unlimited()) {
		return nil
	}
	now := time.Now()
	if excess, ok := who.meter.Spend(now, credits); !ok {
		return tooFast(RefusedRate, "request rate exceeded", s.see, excess)
	}
	if who.owner == nil {
		return s.spendDay(&who.purse, now, credits, "daily quota exceeded")
	}
	if excess, ok := who.owner.meter.Spend(now, credits); !ok {
		return tooFast(RefusedRate, "request rate of the account exceeded", s.see, excess)
	}
	if r := s.spendDay(&who.owner.purse, now, credits, "daily quota of the account exceeded"); r != nil {
		return r
	}
	r := s.spendDay(&who.purse, now, credits, "daily quota exceeded")
	if r != nil {
		who.owner.day.Return(now, credits)
	}
	return r
}

// spendDay takes credits of a day, or says why there are none.
func (s *settings) spendDay(p *purse, now time.Time, credits int, message string) *refusal {
	if p.perDay == 0 {
		return nil
	}
	wait, ok := p.day.Spend(now, credits, p.perDay)
	if ok {
		return nil
	}
	const day = 24 * time.Hour
	return tooFast(RefusedQuota, message, s.see, limit.Excess{
		Current: float64(p.day.Used(now)) / day.Seconds(), Allowed: float64(p.perDay) / day.Seconds(), Wait: wait,
	})
}

// giveBack takes a call that was never begun off the days that paid for it. The rates
// keep its credits: they bound how fast one asks, and who is told to come back later
// should not ask on at any speed.
func (s *settings) giveBack(who *caller, credits int) {
	now := time.Now()
	if who.perDay > 0 {
		who.day.Return(now, credits)
	}
	if who.owner != nil && who.owner.perDay > 0 {
		who.owner.day.Return(now, credits)
	}
}

// Restore counts credits that were spent with a key today by an earlier process. It is
// called before the handler serves.
func (h *Handler) Restore(key *account.Key, credits uint64) {
	now := time.Now()
	day(&h.days.keys, key.ID).Restore(now, credits)
	if !key.Owner.IsZero() {
		day(&h.days.accounts, key.Owner).Restore(now, credits)
	}
}
