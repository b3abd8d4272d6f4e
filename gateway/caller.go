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
	light limit.Share
	heavy limit.Share
	usage *usage.Meter
	owner *owner // nil where the key is the operator's

	rules *account.Rules // that the purse was made for
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

// of returns the caller that a key stands for. One whose rules were changed, or the
// limits of its account, begins with a full burst.
func (c *callers) of(key *account.Key) *caller {
	if who := c.find(key); who != nil {
		return who
	}
	c.making.Lock()
	defer c.making.Unlock()
	if who := c.find(key); who != nil {
		return who
	}
	limits := KeyLimits{Rate: c.keys.Rate, PerDay: c.keys.PerDay}
	if key.Rules != nil {
		limits = limits.with(key.Rules.PerSecond, key.Rules.PerDay)
	}
	who := &caller{purse: c.purse(limits, day(&c.days.keys, key.ID)), usage: c.usage.Meter(key.ID), rules: key.Rules}
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
	if who.rules != key.Rules {
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
		limits := c.accounts.with(of.Limits.PerSecond, of.Limits.PerDay)
		found = &owner{c.purse(limits, day(&c.days.accounts, of.ID)), of.Limits}
		c.byOwner[of.ID] = found
	}
	return found
}

// with returns limits in which own ones take the place of l's, if they are given.
func (l KeyLimits) with(perSecond uint32, perDay uint64) KeyLimits {
	if perSecond > 0 {
		l.Rate = limit.Rate{PerSecond: float64(perSecond), Burst: int(perSecond)}
	}
	if perDay > 0 {
		l.PerDay = perDay
	}
	return l
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

// Restore counts credits that were spent with a key today by an earlier process. It is
// called before the handler serves.
func (h *Handler) Restore(key *account.Key, credits uint64) {
	now := time.Now()
	day(&h.days.keys, key.ID).Restore(now, credits)
	if !key.Owner.IsZero() {
		day(&h.days.accounts, key.Owner).Restore(now, credits)
	}
}
