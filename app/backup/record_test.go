package backup

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A record counts the good backups of each store, and the failures since the last of them. Each target has its own.
func TestRecord(t *testing.T) {
	data, to := t.TempDir(), t.TempDir()
	t.Chdir(filepath.Dir(to))
	for _, step := range []struct {
		target       Target
		made, failed bool
		stores, want string
	}{
		{folder(to), false, true, "accounts networks/a", "accounts 0-1, networks/a 0-1"},
		{folder(filepath.Base(to)), false, true, "networks/a", "accounts 0-1, networks/a 0-2"}, // the same folder
		{folder(to), true, false, "accounts networks/a", "accounts 1-0, networks/a 1-0"},
		{folder(to), true, true, "networks/a", "accounts 1-0, networks/a 2-1"}, // older ones were not removed
		{folder(to), true, false, "networks/a", "accounts 1-0, networks/a 3-0"},
		{folder("other"), false, true, "networks/a", "accounts 1-0, networks/a 3-0"},
	} {
		var made *Made
		if step.made {
			made = new(Made)
		}
		if err := RecordOutcome(data, step.target, strings.Fields(step.stores), made, step.failed); err != nil {
			t.Fatal(err)
		}
		if got := recorded(t, data)[to]; got != step.want {
			t.Errorf("%+v: the record is %q", step, got)
		}
	}
	want := map[string]string{to: "accounts 1-0, networks/a 3-0", filepath.Join(filepath.Dir(to), "other"): "networks/a 0-1"}
	if got := recorded(t, data); !maps.Equal(got, want) {
		t.Errorf("the records are %v, expected %v", got, want)
	}
}

// recorded returns a text of each record by its target: the stores with their good backups and failures.
func recorded(t *testing.T, data string) map[string]string {
	t.Helper()
	records, err := Records(data)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, r := range records {
		var stores []string
		for _, name := range slices.Sorted(maps.Keys(r.Stores)) {
			o := r.Stores[name]
			if o.Made.IsZero() != (o.Good == 0) {
				t.Errorf("%s: %d good backups, the last at %v", name, o.Good, o.Made)
			}
			stores = append(stores, fmt.Sprintf("%s %d-%d", name, o.Good, o.Failures))
		}
		all[r.Target] = strings.Join(stores, ", ")
	}
	return all
}

// A record that is damaged is reported and hides no other one, and the next backup replaces it.
func TestDamagedRecord(t *testing.T) {
	data := t.TempDir()
	for _, target := range []Target{folder("/a"), folder("/b")} {
		if err := RecordOutcome(data, target, []string{"accounts"}, new(Made), false); err != nil {
			t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(data, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("the records are %v, %v", files, err)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if all, err := Records(data); len(all) != 1 || err == nil || !strings.Contains(err.Error(), files[0]) {
		t.Errorf("records %v, %v, expected one, and an error with the file of the other", all, err)
	}
	for _, target := range []Target{folder("/a"), folder("/b")} {
		if err := RecordOutcome(data, target, []string{"accounts"}, new(Made), false); err != nil {
			t.Fatal(err)
		}
	}
	if got := recorded(t, data); len(got) != 2 {
		t.Errorf("the records are %v, expected two", got)
	}
}
