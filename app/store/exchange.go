package store

import (
	"errors"
	"os"
)

// exchangeInSteps swaps two directories by renames. If the process is killed between them,
// b is missing, and is found at a with the suffix .old.
func exchangeInSteps(a, b string) error {
	old := a + ".old"
	if err := os.Rename(b, old); err != nil {
		return err
	}
	if err := os.Rename(a, b); err != nil {
		return errors.Join(err, os.Rename(old, b))
	}
	return os.Rename(old, a)
}
