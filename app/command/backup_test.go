package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/control"
	"ashlar/app"
	"ashlar/app/backup"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/family"
	"ashlar/history/audit"
	"ashlar/internal/await"
	"ashlar/kv"
)

// serving runs a server on a data directory until stop.
func serving(t *testing.T, data string) (s *app.Service, stop func()) {
	t.Helper()
	c := config.Default()
	c.Data, c.Listen = data, "127.0.0.1:0"
	s, err := app.Open(t.Context(), c, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	return s, func() {
		cancel()
		if err := errors.Join(<-ended, s.Close()); err != nil {
			t.Error(err)
		}
	}
}

func keyNames(t *testing.T, data string) (names []string) {
	t.Helper()
	service, closer, err := OpenAccounts(t.Context(), data, "")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := service.Keys.List(t.Context())
	if err := errors.Join(err, closer.Close()); err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	return names
}

func createKey(t *testing.T, keys *account.Keyring, name string) {
	t.Helper()
	if _, err := keys.Create(t.Context(), account.NewKey{Name: name}); err != nil {
		t.Fatal(err)
	}
}

// TestBackupOfServer backs up a running server, which has one of two networks, and restores
// it elsewhere: networks and keys are there, and sound.
func TestBackupOfServer(t *testing.T) {
	data, to, restored := smallNetwork(t), t.TempDir(), filepath.Join(t.TempDir(), "restored")
	s, stop := serving(t, data)
	demoOf(t, named(t, "starknet"), data, demoStarknet, 3) // not served
	createKey(t, s.Keys(), "first")
	if err := (Backup{Data: data, To: to}).Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	createKey(t, s.Keys(), "second")
	if err := (Restore{From: to, Data: restored}).Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if names := keyNames(t, restored); !slices.Equal(names, []string{"first"}) {
		t.Errorf("keys %v after restoring, expected the first", names)
	}
	for _, network := range []string{"small", demoStarknet} {
		if text, err := runVerify(t.Context(), Verify{Data: restored, Network: network}); err != nil || !strings.HasSuffix(text, ": sound\n") {
			t.Errorf("verify %s: %q, %v", network, text, err)
		}
	}
	if err := (Restore{From: to, Data: data, Replace: true}).Run(t.Context(), os.Stderr); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("restore below a running server: %v, expected ErrInUse", err)
	}
	stop()
	if names := keyNames(t, data); !slices.Equal(names, []string{"first", "second"}) {
		t.Errorf("keys %v after a refused restore, expected both", names)
	}
	if left, err := filepath.Glob(filepath.Join(data, "*", "checkpoint")); err != nil || left != nil {
		t.Errorf("copies %v are left, %v", left, err)
	}
}

// TestBackupBesideSnapshot: a backup and a snapshot of a network that a server has open are made
// side by side, two backups are not.
func TestBackupBesideSnapshot(t *testing.T) {
	data := smallNetwork(t)
	_, stop := serving(t, data)
	defer stop()
	client, err := control.Dial(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	saved := Backup{Data: data, To: t.TempDir()}
	snapshot := SnapshotCreate{Data: data, Network: "small", NewSnapshot: family.NewSnapshot{Folder: filepath.Join(t.TempDir(), "snapshot")}}
	for purpose, beside := range map[string]interface {
		Run(ctx context.Context, out *os.File) error
	}{control.ForSnapshot: saved, control.ForBackup: snapshot} {
		_, held, err := client.Checkpoint(t.Context(), control.Copying{For: purpose, Stores: []string{store.NetworkStore("small")}})
		if err != nil || len(held.Made) != 1 {
			t.Fatalf("copies for a %s: %+v, %v", purpose, held, err)
		}
		if err := beside.Run(t.Context(), os.Stderr); err != nil {
			t.Errorf("%T beside a %s: %v", beside, purpose, err)
		}
		if _, err := os.Stat(held.Made[0].Dir); err != nil {
			t.Errorf("the copy for a %s: %v", purpose, err)
		}
		if purpose == control.ForBackup {
			if err := saved.Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "want one backup at a time") {
				t.Errorf("a second backup: %v, expected an error", err)
			}
		}
		if err := held.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, _, err := client.Checkpoint(t.Context(), control.Copying{For: "else"}); err == nil || !strings.Contains(err.Error(), "want backup or snapshot") {
		t.Errorf("copies for something else: %v, expected an error", err)
	}
}

// TestBackupToLostTarget: a backup to a target whose disk is not mounted fails, and is recorded as such.
func TestBackupToLostTarget(t *testing.T) {
	data, to := smallNetwork(t), filepath.Join(t.TempDir(), "to")
	b := Backup{Data: data, To: to}
	if err := b.Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(to, to+"-unmounted"); err != nil {
		t.Fatal(err)
	}
	if err := b.Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "is its disk mounted?") {
		t.Errorf("backup to a target that is gone: %v", err)
	}
	if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the target: %v, expected none", err)
	}
	records, err := backup.Records(data)
	if err != nil || len(records) != 1 || records[0].Stores[store.NetworkStore("small")].Failures != 1 {
		t.Errorf("the records are %+v, %v, expected a failure", records, err)
	}
}

// TestBackupIsRecorded: a backup that fails is recorded as such, one that is interrupted is not, and a good one ends
// the failures.
func TestBackupIsRecorded(t *testing.T) {
	data, to := smallNetwork(t), filepath.Join(t.TempDir(), "to")
	if err := os.WriteFile(to, nil, 0o600); err != nil { // no folder
		t.Fatal(err)
	}
	interrupted, interrupt := context.WithCancel(t.Context())
	interrupt()
	name := store.NetworkStore("small")
	for _, step := range []struct {
		ctx      context.Context
		failures int
		made     bool
	}{{t.Context(), 1, false}, {interrupted, 1, false}, {t.Context(), 2, false}, {t.Context(), 0, true}} {
		if step.made {
			if err := os.Remove(to); err != nil {
				t.Fatal(err)
			}
		}
		if err := (Backup{Data: data, To: to, Networks: []string{"small"}}).Run(step.ctx, os.Stderr); (err == nil) != step.made {
			t.Fatalf("the backup: %v", err)
		}
		records, err := backup.Records(data)
		if err != nil || len(records) != 1 || records[0].Target != to {
			t.Fatalf("the records are %+v, %v, expected one of %s", records, err, to)
		}
		if got := records[0].Stores[name]; got.Failures != step.failures || got.Made.IsZero() == step.made {
			t.Errorf("the record of %s is %+v, expected %d failures", name, got, step.failures)
		} else if step.made && (got.Good != 1 || got.Bytes == 0 || got.Seconds <= 0) {
			t.Errorf("the record of %s is %+v, expected one good backup with size and duration", name, got)
		}
	}
}

// TestBackupRepeats: a backup that fails does not end the repetition; the context does.
func TestBackupRepeats(t *testing.T) {
	data, to := smallNetwork(t), filepath.Join(t.TempDir(), "to")
	if err := os.WriteFile(to, nil, 0o600); err != nil { // no folder
		t.Fatal(err)
	}
	_, stop := serving(t, data)
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- Backup{Data: data, To: to}.Repeat(ctx, 20*time.Millisecond, os.Stderr) }()
	time.Sleep(50 * time.Millisecond)
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	for target, _ := backup.OpenTarget(to); ; time.Sleep(10 * time.Millisecond) {
		if names, err := backup.Names(t.Context(), target); err == nil && len(names) >= 2 {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the repetition ended with %v", err)
		default:
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("the repetition ended with %v, expected no error", err)
	}
}

// TestBackupDoesNotRepeat: a backup whose arguments are wrong is not tried again.
func TestBackupDoesNotRepeat(t *testing.T) {
	data := smallNetwork(t)
	for _, to := range []string{"ftp://host/x", filepath.Join(data, "backups")} {
		ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
		err := Backup{Data: data, To: to}.Repeat(ctx, time.Minute, os.Stderr)
		cancel()
		if wrong := new(family.UsageError); !errors.As(err, &wrong) {
			t.Errorf("to %s: %v, want a usage error", to, err)
		}
	}
}

// An error of a full disk says what to do, once. Other errors stay as they are.
func TestAdviceOnFullDisk(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EDQUOT} {
		file := &fs.PathError{Op: "write", Path: "/mnt/backups/objects/57/57.part", Err: cause}
		err := adviseOnFull(fmt.Errorf("back up networks/demo: %w", file), "Free some space")
		want := fmt.Sprintf("the disk is full: back up networks/demo: write /mnt/backups/objects/57/57.part: %v. Free some space", cause)
		if err.Error() != want || !errors.Is(err, kv.ErrFull) {
			t.Errorf("got %v, expected %s", err, want)
		}
		if again := adviseOnFull(err, "Free some space"); again.Error() != want {
			t.Errorf("an error with advice became %v", again)
		}
	}
	for _, err := range []error{nil, io.ErrUnexpectedEOF, &fs.PathError{Op: "open", Path: "/mnt", Err: syscall.EACCES}} {
		if got := adviseOnFull(err, "Free some space"); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}

// TestChangeOnFullDisk: a command whose store cannot be written says so once, and what to do.
func TestChangeOnFullDisk(t *testing.T) {
	data := store.Dir(smallNetwork(t))
	file := &fs.PathError{Op: "write", Path: "/data/networks/small/000007.log", Err: syscall.ENOSPC}
	for cause, want := range map[error]string{
		fmt.Errorf("move the first block: %w: %w", kv.ErrFull, file): "the disk is full: /data/networks/small/000007.log cannot be written (no space left on device). Free some space and run the same command again: it continues",
		fmt.Errorf("write 2 rows: %w", kv.ErrFailed):                 "write 2 rows: " + kv.ErrFailed.Error() + ". Repair the disk and run the same command again: it continues",
		io.ErrUnexpectedEOF: io.ErrUnexpectedEOF.Error(),
	} {
		err := change(data, "small", nil, "changing", os.Stderr, func(kv.Store, *audit.Progress) error { return cause })
		if err == nil || err.Error() != want || errors.Is(cause, kv.ErrFull) != errors.Is(err, kv.ErrFull) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// TestBackupRefuses: what cannot be backed up or restored.
func TestBackupRefuses(t *testing.T) {
	data, to := smallNetwork(t), t.TempDir()
	unmounted := smallNetwork(t)
	inside := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(data, "networks"), inside); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(store.Dir(unmounted).Network("other"), 0o755); err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string]Backup{
		"has no store":      {Data: unmounted, To: t.TempDir()}, // has the other network all the same
		"no such directory": {Data: filepath.Join(data, "missing"), To: to},
		"not found":         {Data: data, To: to, Networks: []string{"other"}},
		"unknown store":     {Data: data, To: to, Networks: []string{"../x"}},
		"unknown kind":      {Data: data, To: "ftp://x"},
		"no accounts":       {Data: t.TempDir(), To: to},
		"is inside":         {Data: data, To: filepath.Join(data, "networks")},
		"inside the data":   {Data: data, To: data},
		"(want a folder":    {Data: data, To: filepath.Join(inside, "deep", "backups")},
	} {
		if err := b.Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("got %v, expected %q", err, what)
		}
	}
	if err := (Restore{From: to, Data: t.TempDir()}).Run(t.Context(), os.Stderr); !errors.Is(err, backup.ErrNoBackup) {
		t.Errorf("restore from an empty folder: %v, expected ErrNoBackup", err)
	}
	if err := (Restore{From: to}).List(t.Context(), io.Discard); !errors.Is(err, backup.ErrNoBackup) {
		t.Errorf("list of an empty folder: %v, expected ErrNoBackup", err)
	}
	if names, err := store.Dir(data).Names(); err != nil || !slices.Equal(names, []string{"small"}) {
		t.Errorf("after refused backups the networks are %q, %v", names, err)
	}
	opened, err := store.Dir(data).OpenNetwork("small", kv.Options{}) // as an import has it
	if err != nil {
		t.Fatal(err)
	}
	if err := (Backup{Data: data, To: to}).Run(t.Context(), os.Stderr); !errors.Is(err, kv.ErrInUse) {
		t.Errorf("backup of a network that is being imported: %v, expected ErrInUse", err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	if err := (Backup{Data: data, To: to, Networks: []string{"small"}}).Run(t.Context(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if err := (Restore{From: to, Data: t.TempDir()}).Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "made with --network") || !strings.Contains(err.Error(), "no backup here has all stores") {
		t.Errorf("restore of the newest backup, which is of one network: %v", err)
	}
	if err := (Restore{From: to, Data: t.TempDir(), Networks: []string{"small"}}).Run(t.Context(), os.Stderr); err != nil {
		t.Errorf("restore of its network: %v", err)
	}
	if log := logged(t, func() error { return Restore{From: to}.Check(t.Context(), os.Stderr) }); !strings.Contains(log, " checked=networks/small ") {
		t.Errorf("check of the newest backup, which is of one network: the log does not name it: %s", log)
	}
	if err := (Restore{From: to, Data: t.TempDir(), Networks: []string{"other"}}).Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "has no networks/other, only networks/small (want --backup NAME") {
		t.Errorf("restore of a network that the backup lacks: %v", err)
	}
	elsewhere := filepath.Join(t.TempDir(), "small")
	if err := errors.Join(os.Rename(store.Dir(data).Network("small"), elsewhere), os.Symlink(elsewhere, store.Dir(data).Network("small"))); err != nil {
		t.Fatal(err)
	}
	if err := (Restore{From: to, Data: data, Networks: []string{"small"}, Replace: true}).Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "is a symbolic link: expected a directory") {
		t.Errorf("restore over a symbolic link: %v", err)
	}
	if err := (Backup{Data: data, To: filepath.Join(elsewhere, "backup")}).Run(t.Context(), os.Stderr); err == nil || !strings.Contains(err.Error(), "is inside the data directory") {
		t.Errorf("backup into a store behind a symbolic link: %v", err)
	}
}
