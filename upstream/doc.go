// Package upstream asks Ethereum JSON-RPC nodes: a [Pool] of nodes that answer for one
// chain, of which any may be down, slow, behind, out of credits, or of another chain.
//
// A pool promises:
//   - Opening it contacts no node. A call that comes before the first node is known to be
//     of the chain waits for it, within its context.
//   - A call goes to the fastest node that can answer it: one of the chain, whose head has
//     reached [Call.Needs], that has the method and the history, with credits left.
//   - If the node fails, another is asked. If it takes longer than nearly all of its answers
//     to that method, another is asked as well, and the first answer counts.
//   - Calls that are identical while one is under way are sent once.
//   - An answer has a size limit and a time limit, whatever the node sends.
//   - A node that fails often is left alone for a while (a circuit breaker). A node whose
//     answer fails [Call.Check] with [ErrLie] is left alone for longer.
//   - An error that a node gives deliberately, such as a revert, is an answer: a
//     [*NodeError]. All other errors mean that no node answered.
//   - Neither an error of a node, nor an HTTP status with which a proxy before it refuses what a
//     call contains, makes the node count as down: a client may have caused it. Neither does a
//     call that takes too long while the node answers others. A node that refuses a method again
//     and again with such a status, or takes too long, is asked for it after all others.
//
// Answers are not trusted. The pool checks only that an answer is JSON-RPC; everything else
// is up to Check. Errors and logs never contain a node's URL, which may hold a key.
package upstream
