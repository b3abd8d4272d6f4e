//go:build !race

package raced

// Enabled says whether this program has the race detector.
const Enabled = false
