// Package limit keeps one client, or all of them together, from taking more of a server
// than there is: how fast a key spends ([Meter]), how often an address fails
// ([Addresses]), how many calls run at once and which is next ([Pool]), and how many bytes
// requests and answers hold ([Budget]), or filters ([Ledger]).
//
// All of them are bounded, whatever clients do: a Pool by the calls that may wait, Addresses
// by how many it remembers. None has a goroutine. All may be used from many goroutines at
// once. A client that is not limited, or not near its limit, never waits for another.
package limit
