// Package crashes holds imports, and services that follow a node, against everything
// that can end one early. It has no code, only tests: they kill the process, fail
// the disk's operations, cut its power and fill it. Each time
//
//   - what is there opens again with nothing done by hand,
//   - no block is missing that an import had said is kept, or a service had shown,
//   - the same, run again, comes to its end, and what is stored then is equal to what
//     an undisturbed import stores, row by row.
//
// The following of a Starknet network's node is killed as well: what is there then is a chain
// that the node had, with all its events.
//
// Usually a sample of moments is tried:
//
//	go test ./internal/crashes                         a sample
//	go test ./internal/crashes -whole -timeout 1h      every operation of the disk, hundreds of kills
//	go test ./internal/crashes -run Kill -kills 1000   more kills
package crashes
