package limit

import (
	"container/list"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Addresses keeps a Meter for each client address that has something to be counted
// against it, and forgets the one that was quiet longest where there are too many. An
// IPv6 client counts as its /64 network, which is what one gets.
type Addresses struct {
	rate Rate
	max  int

	size  atomic.Int64 // of meters, so that nobody waits to look into an empty table
	mu    sync.Mutex
	byNet map[netip.Addr]*list.Element // guarded by mu; of *addressMeter
	order *list.List                   // guarded by mu: the one counted last is in front
}

type addressMeter struct {
	network netip.Addr
	meter   *Meter
}

// NewAddresses returns a table of at most max addresses.
func NewAddresses(r Rate, max int) *Addresses {
	return &Addresses{rate: r, max: max, byNet: make(map[netip.Addr]*list.Element), order: list.New()}
}

// Len is how many addresses are in the table.
func (a *Addresses) Len() int { return int(a.size.Load()) }

// Blocked says whether an address has spent all that it has, and for how long yet.
func (a *Addresses) Blocked(now time.Time, address netip.Addr) (Excess, bool) {
	if a.rate.Unlimited() || a.size.Load() == 0 {
		return Excess{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.byNet[network(address)]
	if found == nil {
		return Excess{}, false
	}
	m := found.Value.(*addressMeter).meter
	if m.limiter.TokensAt(now) >= 1 {
		return Excess{}, false
	}
	excess, ok := m.Spend(now, 1)
	return excess, !ok
}

// Charge counts one failure against an address.
func (a *Addresses) Charge(now time.Time, address netip.Addr) {
	if a.rate.Unlimited() {
		return
	}
	n := network(address)
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.byNet[n]
	if found == nil {
		found = a.order.PushFront(&addressMeter{n, NewMeter(a.rate)})
		a.byNet[n] = found
		if a.order.Len() > a.max {
			oldest := a.order.Back()
			delete(a.byNet, a.order.Remove(oldest).(*addressMeter).network)
		}
		a.size.Store(int64(a.order.Len()))
	} else {
		a.order.MoveToFront(found)
	}
	found.Value.(*addressMeter).meter.Spend(now, 1)
}

// network is the address as it is counted.
func network(address netip.Addr) netip.Addr {
	address = address.Unmap().WithZone("")
	if !address.Is6() {
		return address
	}
	prefix, err := address.Prefix(64)
	if err != nil {
		return address
	}
	return prefix.Addr()
}
