// Package blocktests holds imports against the block tests that Ethereum's
// clients share: each names a genesis, blocks in RLP, which of them must be
// refused and why, and the state that the others lead to. It has no code, only
// tests, which import those blocks as a user's are imported.
//
//	go test ./internal/blocktests             a sample of every fork's tests
//	go test ./internal/blocktests -whole      all of them
//	go test ./internal/blocktests -only REGEXP    those whose file and name match
package blocktests
