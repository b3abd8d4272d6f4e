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

// Backups of some stores do not count in place of those of all stores, which would be gone. One of all stores counts in place of
// any other, so those of a network that was removed go, too.
func TestPartialBackupsDoNotCount(t *testing.T) {
	const accounts, own, other = "accounts", "networks/own", "networks/other"
	for name, test := range map[string]struct {
		made [][]string // stores of each backup
		keep int
		left []int
	}{
		"one after whole ones":      {[][]string{{accounts, own}, {accounts, own}, {own}}, 1, []int{1, 2}},
		"many after whole ones":     {[][]string{{accounts, own}, {accounts, own}, {accounts, own}, {own}, {own}, {own}, {own}}, 2, []int{1, 2, 5, 6}},
		"of two networks":           {[][]string{{own}, {other}, {own}, {other}, {own}}, 1, []int{3, 4}},
		"of more networks":          {[][]string{{own}, {own, other}}, 1, []int{1}},
		"of fewer networks":         {[][]string{{own, other}, {own}}, 1, []int{0, 1}},
		"a whole one after them":    {[][]string{{own}, {other}, {accounts, own}}, 1, []int{2}},
		"whole ones after a remove": {[][]string{{accounts, other}, {other}, {accounts}, {accounts}}, 2, []int{2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			target := folder(t.TempDir())
			var names, want []string
			for _, stores := range test.made {
				var sources []Source
				for _, store := range stores {
					sources = append(sources, source(t, store, map[string]string{"1.log": store}))
				}
				made, err := Make(t.Context(), target, sources, Options{Partial: !slices.Contains(stores, accounts)}, new(Progress))
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, made.Name)
			}
			for _, i := range test.left {
				want = append(want, names[i])
			}
			removed, err := Prune(t.Context(), target, test.keep)
			left, listErr := Names(t.Context(), target)
			if err != nil || listErr != nil || !slices.Equal(left, want) {
				t.Errorf("%d were removed, %v, and %v are left, %v, expected %v of %v", removed, err, left, listErr, want, names)
			}
			for _, name := range left {
				m, err := Load(t.Context(), target, name)
				if err == nil {
					err = Check(t.Context(), target, m, new(Progress))
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}
