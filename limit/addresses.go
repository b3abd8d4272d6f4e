package limit

import (
	"net/netip"
	"time"
)

// Addresses is a Table of client addresses. An IPv6 client counts as its /64 network,
// which is what a single customer is given.
type Addresses struct{ table *Table[netip.Addr] }

// NewAddresses returns a table of at most max addresses.
func NewAddresses(r Rate, max int) *Addresses { return &Addresses{NewTable[netip.Addr](r, max)} }

// Len is how many addresses are in the table.
func (a *Addresses) Len() int { return a.table.Len() }

// Spend counts one against an address. If that is too many, it counts nothing and returns
// by how much.
func (a *Addresses) Spend(now time.Time, address netip.Addr) (Excess, bool) {
	return a.table.Spend(now, Network(address))
}

// Meter returns the meter of an address.
func (a *Addresses) Meter(address netip.Addr) *Meter { return a.table.Meter(Network(address)) }

// Network is what an address counts as: itself, or the first address of its /64 network.
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
