// Package limit holds what keeps one client, or all of them together, from taking
// more of a server than there is: how fast a key may spend ([Meter]), how often an
// address may fail ([Addresses]), how many calls run at once and who is next
// ([Pool]), and how many bytes requests and answers may hold ([Budget]).
//
// What they keep is bounded by what they are made with, whatever clients do: a Pool
// keeps the calls that wait, as many as may, and Addresses as many as are remembered.
// None has a goroutine. All may be used
// from many goroutines at once. What is not limited, or not near its limit, is let
// through without waiting for anybody.
package limit
