// Package api answers the methods of Ethereum's JSON-RPC interface about one network,
// those that clients know from other nodes (such as trace_ and ots_), and rollup_getEvents.
// docs/methods.md lists them.
//
// Every method decodes its parameters strictly, reads one [query.View], and appends
// the JSON of the answer. Answers are geth's, because clients were written against it;
// docs/differences.md lists the differences. A missing object is null where geth
// answers null, and an error where geth answers an error.
//
// Transactions, receipts and logs are not decoded into structures: they are read from
// stored rows in place and written as hex into the buffer of the answer.
package api
