package command

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"ashlar/app/backup"
	"ashlar/app/store"
	"ashlar/internal/await"
	"ashlar/kv"
)

// backupsOf returns how many backups a folder has.
func backupsOf(t *testing.T, to string) int {
	t.Helper()
	target, err := backup.OpenTarget(to)
	if err != nil {
		t.Fatal(err)
	}
	names, err := backup.Names(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

// TestBackupWhileServerStarts: a server that is starting has the accounts open and does not answer yet. A backup waits for it,
// instead of being without the accounts and keeping the networks from the server.
func TestBackupWhileServerStarts(t *testing.T) {
	data, to := smallNetwork(t), t.TempDir()
	accounts, err := store.Dir(data).OpenAccounts(nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- Backup{Data: data, To: to}.Run(t.Context(), os.Stderr) }()
	select {
	case err := <-ended:
		t.Fatalf("the backup has not waited: %v", err)
	case <-time.After(time.Second):
	}
	network, err := store.Dir(data).OpenNetwork("small", kv.Options{})
	if err != nil {
		t.Fatalf("the backup keeps the network from a server that starts: %v", err)
	}
	if err := errors.Join(network.Close(), accounts.Close()); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if n := backupsOf(t, to); n != 1 {
		t.Errorf("%d backups, expected one", n)
	}
}

// TestRepeatedBackupsAwaitServer: what makes backups again and again is started beside a server, which could not start while a
// backup has the accounts open.
func TestRepeatedBackupsAwaitServer(t *testing.T) {
	data, to := smallNetwork(t), t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Backup{Data: data, To: to}.Repeat(ctx, time.Hour, os.Stderr) }()
	time.Sleep(time.Second)
	if n := backupsOf(t, to); n > 0 {
		t.Errorf("%d backups before the server runs, expected that they wait for it", n)
	}
	_, stop := serving(t, data)
	defer stop()
	await.Until(t, "a backup", func() bool { return backupsOf(t, to) > 0 })
	cancel()
	if err := <-ended; err != nil || backupsOf(t, to) == 0 {
		t.Errorf("%d backups, %v, expected one", backupsOf(t, to), err)
	}
}
