// Package feed holds what it takes to tell clients what happens on a network of any
// family: subscribers, who are sent it, and filters, by which it is asked for.
//
// A [Subscriber] is one subscription of a connection. Whoever tells it something
// never waits for it; results are encoded once and shared by all who are told them.
//
// [Filters] are what a client that can only ask has instead. A filter holds no more
// than a place in a [Journal], a record of what happened that all filters share; so
// a thousand of them take what one does, and what a filter costs when it is read is
// paid by its reader. Filters belong to who made them, expire when nobody reads
// them, and are bounded in number; a journal is bounded in bytes and in time, and
// a filter that has fallen behind it is gone.
package feed
