package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A target without backups says what may be meant: the folder above or below that has some, or a disk that is not mounted.
func TestNone(t *testing.T) {
	dir := t.TempDir()
	to := filepath.Join(dir, "to")
	for _, folder := range []string{"to/objects/3f", "to/backups", "empty", "half/backups"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for target, want := range map[Target]string{
		folder(filepath.Join(dir, "away")):         " does not exist (want a folder or prefix that ashlar backup wrote); is its disk mounted?",
		folder(filepath.Join(to, "backups")):       "; did you mean " + to + "?",
		folder(filepath.Join(to, "objects") + "/"): "; did you mean " + to + "?",
		folder(dir):                          "; did you mean " + to + "?",
		folder(filepath.Join(dir, "empty")):  " has none (want a folder or prefix that ashlar backup wrote)",
		folder(filepath.Join(dir, "half")):   " has none (want a folder or prefix that ashlar backup wrote)",
		&bucket{place: "s3://bucket/prefix"}: "s3://bucket/prefix has none (want a folder or prefix that ashlar backup wrote)",
	} {
		if err := None(target); !errors.Is(err, ErrNoBackup) || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", target, err, want)
		}
	}
}

// A target that has lost its backups is refused, until the record of them is removed. One that never had a good one is not.
func TestCheckKept(t *testing.T) {
	data, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	target := folder(to)
	check := func(when string, lost bool) {
		t.Helper()
		err := CheckKept(t.Context(), data, target)
		if (err != nil) != lost || lost && !strings.Contains(err.Error(), "is its disk mounted?") {
			t.Errorf("%s: %v, expected an error: %v", when, err, lost)
		}
	}
	check("before the first backup", false)
	if err := RecordOutcome(data, target, []string{"accounts"}, nil, true); err != nil {
		t.Fatal(err)
	}
	check("after one that failed", false)
	made, err := Make(t.Context(), target, nil, Options{}, new(Progress))
	if err != nil {
		t.Fatal(err)
	}
	if err := RecordOutcome(data, target, []string{"accounts"}, &made, false); err != nil {
		t.Fatal(err)
	}
	check("after a good one", false)
	if err := os.Rename(to, to+"-unmounted"); err != nil {
		t.Fatal(err)
	}
	check("without the folder", true)
	if err := os.Mkdir(to, 0o700); err != nil {
		t.Fatal(err)
	}
	check("with an empty folder", true)
	path, _, err := recordOf(data, target)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("without the record", false)
}

// Whole is the newest backup that has all stores, whatever came later.
func TestWhole(t *testing.T) {
	target := folder(t.TempDir())
	if name, err := Whole(t.Context(), target); err != nil || name != "" {
		t.Errorf("without backups: %q, %v", name, err)
	}
	want := ""
	for i, o := range []Options{{}, {}, {Partial: true}, {Lacks: []string{"accounts"}}} {
		made, err := Make(t.Context(), target, nil, o, new(Progress))
		if err != nil {
			t.Fatal(err)
		}
		if i == 1 {
			want = made.Name
		}
	}
	if name, err := Whole(t.Context(), target); err != nil || name != want {
		t.Errorf("%q, %v, expected %s", name, err, want)
	}
	if err := os.WriteFile(target.path(backupsFolder+want+suffix), []byte("damage"), 0o600); err != nil {
		t.Fatal(err)
	}
	if name, err := Whole(t.Context(), target); err != nil || name == want || name == "" {
		t.Errorf("with a damaged one: %q, %v, expected the one before", name, err)
	}
}
