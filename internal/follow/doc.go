// Package follow tests the service with a real node that it follows. It contains only tests. Geth
// makes blocks, is wound back and makes others, while clients send requests, and receive
// notifications by subscriptions and by polled filters. Every answer must belong to a single
// branch, and notifications must lead from each state of the chain to the next without omissions
// or repetitions.
//
// The tests need geth (see internal/node) and the client libraries (see internal/clients).
package follow
