//go:build !linux

package store

// exchange swaps two directories.
func exchange(a, b string) error { return exchangeInSteps(a, b) }
