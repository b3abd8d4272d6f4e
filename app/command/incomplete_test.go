package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/app/backup"
	"ashlar/app/store"
)

// TestBackupWithoutSickNetwork: a network whose store does not open keeps no other one from being backed up. The
// backup says that it is not complete: by its error, its record, its manifest and in what a restore refuses.
func TestBackupWithoutSickNetwork(t *testing.T) {
	data, to := smallNetwork(t), t.TempDir()
	small, sick := store.NetworkStore("small"), store.NetworkStore("sick")
	demoOf(t, named(t, "evm"), data, "sick", 2)
	backUp := func() error { return Backup{Data: data, To: to, Keep: 1}.Run(t.Context(), os.Stderr) }
	if err := backUp(); err != nil {
		t.Fatal(err)
	}
	for _, server := range []bool{false, true} {
		if server {
			_, stop := serving(t, data)
			defer stop()
		}
		if !server {
			breakStore(t, store.Dir(data).Network("sick"))
		}
		if err := backUp(); err == nil || !strings.Contains(err.Error(), "is not complete: it lacks "+sick) {
			t.Errorf("server %v: the backup's error is %v, expected the name of the network that it lacks", server, err)
		}
	}
	target, err := backup.OpenTarget(to)
	if err != nil {
		t.Fatal(err)
	}
	names, err := backup.Names(t.Context(), target)
	if err != nil || len(names) != 3 {
		t.Fatalf("backups %v, %v, expected the whole one, and two without a network", names, err)
	}
	newest, err := backup.Load(t.Context(), target, "")
	if err != nil || !slices.Equal(newest.Lacks, []string{sick}) || !slices.ContainsFunc(newest.Stores, func(s backup.Store) bool { return s.Name == small }) {
		t.Fatalf("the newest backup lacks %v, %v", newest.Lacks, err)
	}
	records, err := backup.Records(data)
	if err != nil || len(records) != 1 {
		t.Fatalf("records %v, %v", records, err)
	}
	if o := records[0].Stores; o[small].Good != 3 || o[small].Failures != 0 || o[sick].Good != 1 || o[sick].Failures != 2 {
		t.Errorf("the record is %+v", o)
	}
	restoreIncomplete(t, to, names[0], names[2])
}

// breakStore removes files that the store in a directory cannot be opened without.
func breakStore(t *testing.T, dir string) {
	t.Helper()
	lists, err := filepath.Glob(filepath.Join(dir, "MANIFEST-*"))
	if err != nil || len(lists) == 0 {
		t.Fatalf("%d lists of the store's files, %v", len(lists), err)
	}
	for _, list := range lists {
		if err := os.Remove(list); err != nil {
			t.Fatal(err)
		}
	}
}

// restoreIncomplete restores a whole backup and a newer one that lacks a network. The newer one is restored only if it is named.
func restoreIncomplete(t *testing.T, from, whole, incomplete string) {
	t.Helper()
	out := t.TempDir()
	for name, test := range map[string]struct {
		restore Restore
		err     string // empty: none
	}{
		"newest":   {Restore{}, "the newest backup is not complete: it lacks networks/sick"},
		"lacked":   {Restore{Networks: []string{"sick"}}, "lacks networks/sick, which could not be copied then"},
		"whole":    {Restore{Backup: whole}, ""},
		"named":    {Restore{Backup: incomplete}, ""},
		"selected": {Restore{Networks: []string{"small"}}, ""},
	} {
		test.restore.From, test.restore.Data = from, filepath.Join(out, name)
		err := test.restore.Run(t.Context(), os.Stderr)
		if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("restore %s: %v, expected %q", name, err, test.err)
		}
		if there := store.Dir(test.restore.Data).HasStore(store.NetworkStore("small")); there != (test.err == "") {
			t.Errorf("restore %s: the sound network is there: %v", name, there)
		}
	}
	if err := (Restore{From: from}).Check(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "is not complete: it lacks networks/sick; what it has is sound") {
		t.Errorf("check: %v", err)
	}
	if err := (Restore{From: from, Backup: whole}).Check(t.Context(), os.Stderr); err != nil {
		t.Errorf("check of the whole backup: %v", err)
	}
	var list strings.Builder
	if err := (Restore{From: from}).List(t.Context(), &list); err != nil || strings.Count(list.String(), "(lacks networks/sick)") != 2 {
		t.Errorf("the list is %q, %v", list.String(), err)
	}
}
