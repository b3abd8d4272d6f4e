package backup

import (
	"slices"
	"testing"
)

// Backups that lack a store do not count in place of complete ones: after some of them, the next complete backup would be the only
// one with that store.
func TestIncompleteBackupsDoNotCount(t *testing.T) {
	target := folder(t.TempDir())
	var names []string
	for _, lacks := range [][]string{nil, nil, {"networks/sick"}, {"networks/sick"}, {"networks/sick"}, nil} {
		made, err := Make(t.Context(), target, []Source{source(t, "accounts", map[string]string{"1.log": "keys"})}, Options{Lacks: lacks}, new(Progress))
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, made.Name)
	}
	for _, test := range []struct {
		keep int
		want []string
	}{{4, names}, {2, []string{names[1], names[4], names[5]}}, {1, names[5:]}} {
		removed, err := Prune(t.Context(), target, test.keep)
		left, listErr := Names(t.Context(), target)
		if err != nil || listErr != nil || !slices.Equal(left, test.want) {
			t.Errorf("to keep %d, %d were removed, %v, and %v are left, %v, expected %v", test.keep, removed, err, left, listErr, test.want)
		}
	}
}
