//go:build !linux

package worker

// confine does nothing: without Linux a worker is bounded by Go's runtime alone.
func confine() error { return nil }

// usedUp reports false: no limit is known.
func usedUp(int) bool { return false }

// gone reports false: it is not known.
func gone(int) bool { return false }
