package main

import (
	"slices"
	"testing"
)

// allowed are the licences that allow distributing the binary without further conditions
// than to include their text.
func allowed() []string {
	return []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "Unlicense", "Zlib", "0BSD"}
}

// exceptions are modules with other licences, and why they may be in the program.
func exceptions() map[string][]string {
	return map[string][]string{
		// LGPL: users can build the program with another version of the library; its commands,
		// under the GPL, are not in the program.
		"github.com/ethereum/go-ethereum": {"GPL-3.0", "LGPL-3.0"},
	}
}

// TestLicences checks that each module in the program has a licence, and an allowed one.
func TestLicences(t *testing.T) {
	all, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 50 {
		t.Errorf("%d modules found, expected at least 50", len(all))
	}
	for _, m := range all {
		kinds, err := m.kinds()
		if err != nil {
			t.Fatal(err)
		}
		if len(kinds) == 0 {
			t.Errorf("%s %s: no licence found", m.Path, m.Version)
		}
		for _, kind := range kinds {
			if !slices.Contains(allowed(), kind) && !slices.Contains(exceptions()[m.Path], kind) {
				t.Errorf("%s %s: licence %s, expected one of %v", m.Path, m.Version, kind, allowed())
			}
		}
	}
}
