package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/account/control"
	"ashlar/app/backup"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/kv"
)

// withAccounts returns a data directory with the network small and an API key.
func withAccounts(t *testing.T) (data string) {
	t.Helper()
	data = smallNetwork(t)
	s, stop := serving(t, data)
	createKey(t, s.Keys(), "first")
	stop()
	return data
}

// TestBackupLeavesStores: while a backup without a server copies, the stores can be served and changed. They are neither replaced
// nor removed, and not backed up at the same time. The backup is as of the moment at which it began.
func TestBackupLeavesStores(t *testing.T) {
	data, to, restored := withAccounts(t), t.TempDir(), filepath.Join(t.TempDir(), "restored")
	earlier := t.TempDir()
	if err := (Backup{Data: data, To: earlier}).Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	small := store.NetworkStore("small")
	ctx, copied, err := checkpoints(t.Context(), store.Dir(data), control.Copying{For: control.ForBackup, Stores: []string{small, store.AccountsName}}, false)
	if err != nil {
		t.Fatal(err)
	}
	belongs := fmt.Sprint("belongs to process ", os.Getpid())
	for what, err := range map[string]error{
		"another backup": Backup{Data: data, To: t.TempDir()}.Run(t.Context(), os.Stderr),
		"a restore":      Restore{From: earlier, Data: data, Replace: true}.Run(t.Context(), os.Stderr),
		"a removal":      second(RemoveNetwork(t.Context(), data, "small")),
	} {
		if !errors.Is(err, kv.ErrCheckpoint) || !strings.Contains(err.Error(), belongs) {
			t.Errorf("%s: %v, expected ErrCheckpoint and %q", what, err, belongs)
		}
	}
	snapshot := SnapshotCreate{Data: data, Network: "small", NewSnapshot: family.NewSnapshot{Folder: filepath.Join(t.TempDir(), "snapshot")}}
	if err := snapshot.Run(t.Context(), os.Stderr); err != nil {
		t.Errorf("a snapshot: %v", err)
	}
	s, stop := serving(t, data)
	createKey(t, s.Keys(), "second")
	stop()
	if err := (Rewind{Data: data, Network: "small", To: 1}).Run(t.Context(), io.Discard, os.Stderr); err != nil {
		t.Error(err)
	}
	target, err := backup.OpenTarget(to)
	if err != nil {
		t.Fatal(err)
	}
	_, err = backup.Make(ctx, target, copied.sources, backup.Options{}, new(backup.Progress))
	if err := errors.Join(err, copied.release()); err != nil {
		t.Fatal(err)
	}
	for file := range files(t, data) {
		if strings.Contains(file, "checkpoint") {
			t.Errorf("%s is left", file)
		}
	}
	if err := (Restore{From: to, Data: restored}).Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if names := keyNames(t, restored); !slices.Equal(names, []string{"first"}) {
		t.Errorf("keys %v after restoring, expected the first", names)
	}
	if names := keyNames(t, data); !slices.Equal(names, []string{"first", "second"}) {
		t.Errorf("keys %v in the data directory, expected both", names)
	}
	before, err := runVerify(t.Context(), Verify{Data: restored, Network: "small"})
	if err != nil || !strings.HasSuffix(before, ": sound\n") {
		t.Errorf("verify the restored network: %q, %v", before, err)
	}
	if now, err := runVerify(t.Context(), Verify{Data: data, Network: "small"}); err != nil || now == before {
		t.Errorf("verify the network after a rewind: %q, %v, expected fewer blocks than %q", now, err, before)
	}
}

func second(_ bool, err error) error { return err }

// TestBackupAsServerStarts: a server that has opened the accounts since no server was there is asked for the rest. Without one, the
// accounts alone are not copied.
func TestBackupAsServerStarts(t *testing.T) {
	data := store.Dir(withAccounts(t))
	accounts, err := data.OpenAccounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	what := control.Copying{For: control.ForBackup, Stores: []string{store.AccountsName, store.NetworkStore("small")}}
	c := &copies{failed: make(map[string]error)}
	if err := c.ofClosed(t.Context(), data, what, true); !errors.Is(err, errServerStarts) || len(c.rest(what).Stores) != 2 {
		t.Errorf("copies while a server starts: %v, left are %v", err, c.rest(what))
	}
	if err := c.ofClosed(t.Context(), data, what, false); err != nil || len(c.sources) != 1 || !errors.Is(c.failed[store.AccountsName], kv.ErrInUse) {
		t.Errorf("copies while no server starts: %v, made are %v, failed are %v", err, c.sources, c.failed)
	}
	if err := errors.Join(c.release(), accounts.Close()); err != nil {
		t.Fatal(err)
	}
	_, stop := serving(t, string(data))
	defer stop()
	ctx, asked, err := checkpoints(t.Context(), data, what, true)
	if err != nil || len(asked.sources) != 2 || ctx.Err() != nil {
		t.Fatalf("copies of a server: %+v, %v", asked, err)
	}
	if err := asked.release(); err != nil {
		t.Error(err)
	}
}

// TestServerAwaitsAccounts: a server that starts while a backup reserves the accounts waits for it.
func TestServerAwaitsAccounts(t *testing.T) {
	data := withAccounts(t)
	free, err := store.Dir(data).Reserve(store.AccountsName)
	if err != nil {
		t.Fatal(err)
	}
	freed := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { freed <- free() })
	_, stop := serving(t, data)
	stop()
	if err := <-freed; err != nil {
		t.Error(err)
	}
}

// TestCopiesSayWhy: each store that cannot be copied is named once.
func TestCopiesSayWhy(t *testing.T) {
	data := store.Dir(t.TempDir())
	for _, dir := range []string{"accounts", "networks/empty"} {
		if err := os.MkdirAll(filepath.Join(string(data), dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	broken := filepath.Join(string(data), "accounts", "marker.format-version.000001.1")
	if err := os.WriteFile(broken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	what := control.Copying{For: control.ForBackup, Stores: []string{store.AccountsName, store.NetworkStore("empty"), store.NetworkStore("none")}}
	_, _, err := checkpoints(t.Context(), data, what, false)
	if err == nil {
		t.Fatal("stores that are not there were copied")
	}
	parts := strings.Split(err.Error(), "; and ")
	for i, name := range what.Stores {
		if why, named := strings.CutPrefix(parts[min(i, len(parts)-1)], name+": "); !named || strings.HasPrefix(why, name+": ") {
			t.Errorf("%q, expected that part %d names %s once", err, i, name)
		}
	}
}
