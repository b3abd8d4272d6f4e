// Package differential asks Ashlar and a real geth, on the same chain, thousands
// of generated questions and compares the answers.
//
// The questions come from a seed: the same seed asks the same questions. What may
// differ is listed in allowed.go, each with its reason, and told to users in
// docs/differences.md.
package differential
