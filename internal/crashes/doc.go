// Package crashes tests imports, and services that follow a node, against everything that can
// interrupt them: it kills the process, fails disk operations, cuts the power of a simulated disk
// and fills it. It contains only tests. After each interruption
//
//   - the store opens again without manual repair,
//   - no block is missing that an import had reported as durable or a service had shown,
//   - the same import, run again, completes and leaves a store that is equal, row by row, to
//     that of an undisturbed import.
//
// For a service that follows a Starknet node, the store must contain a chain that the node had,
// with all its events.
//
// By default a sample of moments is tested:
//
//	go test ./internal/crashes                         a sample
//	go test ./internal/crashes -whole -timeout 1h      every operation of the disk, hundreds of kills
//	go test ./internal/crashes -run Kill -kills 1000   more kills
package crashes
