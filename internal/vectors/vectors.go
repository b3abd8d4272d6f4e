// Package vectors finds third-party test data, which is not part of the project. The environment
// variable ASHLAR_TESTDATA names the folder.
package vectors

import (
	"os"
	"path/filepath"
	"testing"
)

// Path returns the path of a file or folder of the test data. If it is missing, the test is
// skipped, or fails if ASHLAR_REQUIRE_ALL is 1.
func Path(t testing.TB, elem ...string) string {
	t.Helper()
	root := os.Getenv("ASHLAR_TESTDATA")
	if root == "" {
		Missing(t, "needs third-party test data: set ASHLAR_TESTDATA to its folder")
	}
	path := filepath.Join(append([]string{root}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		Missing(t, "test data is incomplete: "+err.Error())
	}
	return path
}

// Missing ends a test that lacks something it needs: the test is skipped, or fails if
// ASHLAR_REQUIRE_ALL is 1.
func Missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("ASHLAR_REQUIRE_ALL") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}
