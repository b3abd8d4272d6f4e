// Package differential sends thousands of generated requests to Ashlar and to a real geth with the
// same chain, and compares the answers.
//
// The requests depend only on a seed. Intended differences are listed in allowed.go with their
// reasons, and documented in docs/differences.md.
//
// TestCrossing compares the two while they are driven over the Engine API from Osaka into
// Amsterdam. The test plays the consensus client, and geth builds the blocks.
package differential
