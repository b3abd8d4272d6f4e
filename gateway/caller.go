package gateway

import (
	"sync"

	"ashlar/account"
	"ashlar/limit"
)

// caller is what is counted of one key.
type caller struct {
	meter  *limit.Meter
	day    *limit.Day
	perDay uint64
	light  limit.Share
	heavy  limit.Share
	rules  *account.Rules // that meter and perDay were made for
}

// callers are the keys that have been used. There are never more than keys exist.
type callers struct {
	limits KeyLimits
	most   int   // credits of the dearest method: whoever may spend at all may call it
	days   *days // outlive a change of limits
	byKey  sync.Map
	making sync.Mutex // held while one is made
}

// days are what each key has spent of its day, a *limit.Day by its account.KeyID.
type days = sync.Map

// of returns the caller that a key stands for. One whose rules were changed begins
// with a full burst.
func (c *callers) of(key *account.Key) *caller {
	if who := c.find(key); who != nil {
		return who
	}
	c.making.Lock()
	defer c.making.Unlock()
	if who := c.find(key); who != nil {
		return who
	}
	rate, perDay := c.limits.Rate, c.limits.PerDay
	if key.Rules != nil && key.Rules.PerSecond > 0 {
		rate = limit.Rate{PerSecond: float64(key.Rules.PerSecond), Burst: int(key.Rules.PerSecond)}
	}
	if key.Rules != nil && key.Rules.PerDay > 0 {
		perDay = key.Rules.PerDay
	}
	rate.Burst = max(rate.Burst, c.most)
	day, _ := c.days.LoadOrStore(key.ID, new(limit.Day))
	who := &caller{meter: limit.NewMeter(rate), day: day.(*limit.Day), perDay: perDay, rules: key.Rules}
	c.byKey.Store(key.ID, who)
	return who
}

func (c *callers) find(key *account.Key) *caller {
	if found, ok := c.byKey.Load(key.ID); ok {
		if who := found.(*caller); who.rules == key.Rules {
			return who
		}
	}
	return nil
}
