package command

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ashlar/account/control"
	"ashlar/app/store"
	"ashlar/kv"
)

// A removal that was killed while it deleted is completed by the same command, which gives the space free.
func TestRemoveNetworkAgain(t *testing.T) {
	data := t.TempDir()
	rest := filepath.Join(data, "networks", ".removed-old")
	if err := os.MkdirAll(rest, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(rest, "000001.sst"), []byte("rows"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := RemoveNetwork(t.Context(), data, "old"); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(filepath.Dir(rest)); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if _, err := RemoveNetwork(t.Context(), data, "old"); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("once more: %v, expected not found", err)
	}
}

// TestRemoveServedLink: a network behind a symbolic link is refused before the server takes it out of service,
// with what to do, and the configuration is not said to list a network that is gone.
func TestRemoveServedLink(t *testing.T) {
	data, target := smallNetwork(t), filepath.Join(t.TempDir(), "large")
	if err := errors.Join(os.Rename(store.Dir(data).Network("small"), target), os.Symlink(target, store.Dir(data).Network("small"))); err != nil {
		t.Fatal(err)
	}
	s, stop := serving(t, data)
	defer stop()
	s.Pinned = []string{"small"} // so taking it out of service is an error
	listed, err := RemoveNetwork(t.Context(), data, "small")
	const advice = "stop the server, then remove the link and what it names"
	if err == nil || !strings.HasSuffix(err.Error(), advice) || listed {
		t.Errorf("remove: listed %t, %v, want %q", listed, err, advice)
	}
}

// TestRemoveCopied: a network that a backup copies which began before the server is refused before the server takes it out of
// service. It can be removed when the backup has ended.
func TestRemoveCopied(t *testing.T) {
	data := smallNetwork(t)
	small := store.NetworkStore("small")
	_, copied, err := checkpoints(t.Context(), store.Dir(data), control.Copying{For: control.ForBackup, Stores: []string{small}}, false)
	if err != nil {
		t.Fatal(err)
	}
	s, stop := serving(t, data)
	defer stop()
	before := s.Network("small")
	_, err = RemoveNetwork(t.Context(), data, "small")
	if !errors.Is(err, kv.ErrCheckpoint) && (err == nil || !strings.Contains(err.Error(), "stays in service: the store is being copied already")) {
		t.Errorf("remove: %v, expected that it is being copied", err)
	}
	if before == nil || s.Network("small") != before {
		t.Error("the network was taken out of service")
	}
	if err := copied.release(); err != nil {
		t.Fatal(err)
	}
	if _, err := RemoveNetwork(t.Context(), data, "small"); err != nil {
		t.Error(err)
	}
}

// TestServeAlias: a network whose directory is that of another one is left out of the service and of backups, and
// named. The other one is served.
func TestServeAlias(t *testing.T) {
	data := smallNetwork(t)
	if err := os.Symlink("small", store.Dir(data).Network("alias")); err != nil {
		t.Fatal(err)
	}
	s, stop := serving(t, data)
	defer stop()
	const why = "is the directory of the network small, too"
	left := s.Unserved(t.Context())
	if len(left) != 1 || left[0].Name != "alias" || !left[0].Failed || !strings.Contains(left[0].Why, why) {
		t.Errorf("not served: %+v, want alias, because it %s", left, why)
	}
	status, err := ReadStatus(t.Context(), data, "")
	if err != nil || !slices.Equal(status.Served(), []string{"small"}) {
		t.Errorf("served: %+v, %v", status, err)
	}
	if err := (Backup{Data: data, To: t.TempDir()}).Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "is not complete: it lacks networks/alias: ") || !strings.Contains(err.Error(), why) {
		t.Errorf("backup: %v", err)
	}
}
