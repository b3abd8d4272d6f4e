// Package differential sends thousands of generated requests to Ashlar and to a real geth with the
// same chain, and compares the answers.
//
// The requests depend only on a seed. Intended differences are listed in allowed.go with their
// reasons, and documented in docs/differences.md.
package differential
