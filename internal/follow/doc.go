// Package follow holds the service against a real node that it follows. It has no
// code, only tests: geth makes blocks, is wound back and makes others, while the
// service is asked, and every answer has to be of one branch.
//
// They need a geth: see internal/node.
package follow
