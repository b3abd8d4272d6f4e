//go:build race

package worker_test

// raced says whether this program has the race detector.
const raced = true
