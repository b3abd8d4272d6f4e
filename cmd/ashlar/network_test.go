package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ashlar/app/store"
	"ashlar/kv"
)

func TestNetworksFromTheShell(t *testing.T) {
	d := newDataDirectory(t)
	makeStarknet(t, d.path, "l2")
	s := shell{t, d.path}
	s.says(`^NETWORK  SERVED  DISK\na +no +\S+ MiB\nl2 +no +\S+ MiB\n$`, "network", "list")
	if out := s.do(exitUsage, "network", "remove", "l2"); !strings.Contains(out, "give --yes to remove them") {
		t.Errorf("remove without --yes: %s", out)
	}
	held, err := store.Dir(d.path).OpenNetwork("l2", kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if out := s.do(exitFailed, "network", "remove", "l2", "--yes"); !strings.Contains(out, "the store is in use") {
		t.Errorf("remove an open network: %s", out)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	// The rest of an earlier removal that was interrupted goes, too.
	if err := os.Mkdir(filepath.Join(d.path, "networks", ".removed-l2"), 0o755); err != nil {
		t.Fatal(err)
	}
	s.do(exitDone, "network", "remove", "l2", "--yes")
	if left, err := filepath.Glob(filepath.Join(d.path, "networks", "*")); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
	if out := s.do(exitUsage, "network", "remove", "../x", "--yes"); !strings.Contains(out, "invalid network name") {
		t.Errorf("remove a network with a wrong name: %s", out)
	}
	for want, args := range map[string]string{
		"network l2: not found": "network remove l2 --yes",
		"no server is running":  "network add a",
	} {
		if out := s.do(exitFailed, strings.Fields(args)...); !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("%s does not say %q:\n%s", args, want, out)
		}
	}
}

// TestListWithBrokenLink: a link that cannot be followed is a network of unknown size, and the others are listed.
func TestListWithBrokenLink(t *testing.T) {
	d := newDataDirectory(t)
	if err := os.Symlink("z", store.Dir(d.path).Network("z")); err != nil {
		t.Fatal(err)
	}
	s := shell{t, d.path}
	s.says(`(?m)^\S+ +no +\S+ MiB\nz +no +unknown\n`, "network", "list")
	s.says(`(?m)^network z: size of its store: `, "network", "list")
}
