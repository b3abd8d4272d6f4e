// Package feed implements subscriptions and polled filters for networks of any family.
//
// A [Subscriber] is one subscription of a connection. Notifying it never blocks; a
// result is encoded once and shared by all subscribers that get it.
//
// [Filters] are for clients that poll. A filter holds no more than a position in a
// [Journal], a record of events that all filters share: a thousand filters take the
// memory of one journal, and the cost of reading a filter is paid by its reader. A filter
// belongs to the caller that made it and expires when it is not read. The number of
// filters is bounded; a journal is bounded in bytes and in time, and a filter that falls
// behind it is removed.
package feed
