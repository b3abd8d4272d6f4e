// Package follow holds the service against a real node that it follows. It has no
// code, only tests: geth makes blocks, is wound back and makes others, while the
// service is asked and clients are told what happens, by subscriptions and by filters
// that they poll. Every answer has to be of one branch, and what is told has to lead
// from what was told before to the chain that is, everything exactly once.
//
// They need a geth (see internal/node) and the client libraries (see internal/clients).
package follow
