// Package eth answers the eth_, net_, web3_ and debug_ methods of Ethereum's
// JSON-RPC interface about one network.
//
// Every method decodes its parameters strictly, takes one [query.View], asks it
// alone, and appends the JSON of the answer. Answers are those of geth, which
// clients were written against, with what the specification has beyond it
// (totalDifficulty in blocks); docs/differences.md lists what differs. What was
// not found is null where geth says null, and an error where geth says an error.
//
// Nothing on the way from a stored row to the answer is decoded into structures
// first: transactions, receipts and logs are read in place and written as hex
// into the buffer that goes out.
package api
