package limit

import (
	"net/netip"
	"time"
)

// Addresses is a Table of client addresses. An IPv6 client counts as its /64 network,
// which is what one gets.
type Addresses struct{ table *Table[netip.Addr] }

// NewAddresses returns a table of at most max addresses.
func NewAddresses(r Rate, max int) *Addresses { return &Addresses{NewTable[netip.Addr](r, max)} }

// Len is how many addresses are in the table.
func (a *Addresses) Len() int { return a.table.Len() }

// Blocked says whether an address has spent all that it has, and for how long yet.
func (a *Addresses) Blocked(now time.Time, address netip.Addr) (Excess, bool) {
	if a.Len() == 0 {
		return Excess{}, false
	}
	return a.table.Blocked(now, Network(address))
}

// Spend counts one against an address, or says by how much it is too many, and counts
// none.
func (a *Addresses) Spend(now time.Time, address netip.Addr) (Excess, bool) {
	return a.table.Spend(now, Network(address))
}

// Network is what an address is counted as: itself, or its /64 network's first address.
func Network(address netip.Addr) netip.Addr {
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
