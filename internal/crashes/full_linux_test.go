package crashes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/internal/node"
)

// smallDisk names an environment variable, set by TestFullDisk: the directory where TestOnSmallDisk
// mounts its disk, and the chain to import.
const smallDisk = "ASHLAR_CRASHES_SMALL_DISK"

// noMount is the error of TestOnSmallDisk if it may not mount a disk.
const noMount = "cannot mount a disk"

// TestFullDisk runs TestOnSmallDisk in kernel namespaces in which it may mount a disk.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	export := generateExport(t)
	inside := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOnSmallDisk$", "-test.v")
	inside.Env = append(os.Environ(), smallDisk+"="+strings.Join(append([]string{t.TempDir(), build(t), export.genesis}, export.files...), string(os.PathListSeparator)))
	inside.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := inside.CombinedOutput()
	switch {
	case errors.Is(err, fs.ErrPermission) || strings.Contains(string(out), noMount):
		t.Skipf("tests cannot mount a disk on this machine: %v\n%s", err, out)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}

// TestOnSmallDisk imports onto a disk that is too small, resumes after the disk has grown, and fills
// the disk of a server.
func TestOnSmallDisk(t *testing.T) {
	given := strings.Split(os.Getenv(smallDisk), string(os.PathListSeparator))
	if len(given) < 4 {
		t.Skip("runs only as a process of TestFullDisk")
	}
	disk, bin, export := given[0], given[1], export{given[2], given[3:]}
	roomy := newNetwork(t, bin)
	roomy.mustImport(t, export)
	want := roomy.contents(t)
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d", bytesBelow(t, roomy.Data)/2)); err != nil {
		t.Fatalf("%s: %v", noMount, err)
	}
	n := network{node.Ashlar{Bin: bin, Data: filepath.Join(disk, "data"), Network: "test"}}

	p, err := n.Import(t.Context(), export.genesis, export.files...)
	if err != nil {
		t.Fatal(err)
	}
	if code := p.ExitCode(); code != 1 {
		t.Errorf("exit code %d of an import onto a full disk, expected 1", code)
	}
	stopped := p.Output()
	t.Logf("output of the import:\n%s", stopped)
	expectWords(t, stopped, "the disk is full", n.Data, "no space left", "Blocks up to", "are kept", "run the same command again")

	if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=256m"); err != nil {
		t.Fatal(err)
	}
	n.checkKept(t, stopped)
	n.mustImport(t, export)
	if err := want.differ(n.contents(t)); err != nil {
		t.Error(err)
	}
	backupToFullDisk(t, roomy)
	serveOnFullDisk(t, n, disk)
}

// backupToFullDisk makes a backup on a disk that is too small for it, and restores one there. Each fails, says what to do, leaves
// no part of a file, and succeeds once the disk has grown.
func backupToFullDisk(t *testing.T, n network) {
	t.Helper()
	disk := t.TempDir()
	small := fmt.Sprintf("size=%d", bytesBelow(t, n.Data)/2)
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, small); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, 0) })
	backups := filepath.Join(disk, "backups")
	restored := network{node.Ashlar{Bin: n.Bin, Data: filepath.Join(disk, "restored"), Network: n.Network}}
	elsewhere := t.TempDir()
	if out, err := n.command(t, "backup", "--to", elsewhere); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, one := range []struct {
		of     network
		args   []string
		advice string
	}{
		{n, []string{"backup", "--to", backups}, "Earlier backups stay as they are. Free some space and run the same command again"},
		{restored, []string{"restore", "--from", elsewhere}, "No store was replaced. Free some space and run the same command again"},
	} {
		if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, small); err != nil {
			t.Fatal(err)
		}
		out, err := one.of.command(t, one.args...)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%s onto a full disk: %v, expected exit code 1", one.args[0], err)
		}
		t.Logf("output of the %s:\n%s", one.args[0], out)
		expectWords(t, out, "the disk is full", disk, "no space left", one.advice)
		if err := filepath.WalkDir(disk, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".part") {
				t.Errorf("%s is left", path)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
		if err := syscall.Mount("tmpfs", disk, "tmpfs", syscall.MS_REMOUNT, "size=256m"); err != nil {
			t.Fatal(err)
		}
		if out, err := one.of.command(t, one.args...); err != nil {
			t.Errorf("%s when there is space again: %v\n%s", one.args[0], err, out)
		}
		if err := os.RemoveAll(filepath.Join(disk, "backups")); err != nil {
			t.Fatal(err)
		}
	}
}

// serveOnFullDisk fills the disk below a server: it goes on answering, refuses to make keys,
// says why, and revokes keys all the same. When there is space again, it makes keys as
// before, and the revocation is durable.
func serveOnFullDisk(t *testing.T, n network, disk string) {
	t.Helper()
	p, client, err := n.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	leaked, err := n.command(t, "key", "create", "--name", "leaked")
	if err != nil {
		t.Fatalf("%v\n%s", err, leaked)
	}
	leaked = strings.TrimSpace(leaked)
	filler := filepath.Join(disk, "filler")
	if err := fill(filler); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	_, err = n.CreateKey(t.Context())
	if err == nil {
		t.Fatal("a key on a full disk")
	}
	t.Logf("a new key: %v", err)
	expectWords(t, err.Error(), "the disk is full", n.Data, "no space left")
	checkHead(t, client)
	thief := node.NewClient(strings.Replace(client.URL, keyOf(client), leaked, 1))
	checkHead(t, thief)
	out, err := n.command(t, "key", "revoke", "leaked")
	if err == nil {
		t.Error("a revocation on a full disk is reported as done")
	}
	expectWords(t, out, "in effect, but not yet durable")
	checkRevoked(t, thief)
	out, err = n.command(t, "status")
	if err != nil {
		t.Error(err)
	}
	expectWords(t, out, "not yet durable: restrictions of key ", "the disk is full")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(await.Patience); ; time.Sleep(100 * time.Millisecond) {
		out, err := n.command(t, "status")
		if err == nil && !strings.Contains(out, "not yet durable") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the revocation is still not durable: %v\n%s", err, out)
		}
	}
	if _, err := n.CreateKey(t.Context()); err != nil {
		t.Errorf("a new key when there is space again: %v", err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	expectWords(t, p.Output(), "the disk is nearly full; reads go on", "the disk has space again")
	p, again, err := n.Serve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	checkHead(t, again)
	checkRevoked(t, node.NewClient(strings.Replace(again.URL, keyOf(again), leaked, 1)))
	checkHead(t, node.NewClient(strings.Replace(again.URL, keyOf(again), keyOf(client), 1))) // the earlier key
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
}

// command runs ashlar on the network's data directory, and returns what it prints.
func (n network) command(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), n.Bin, append(args, "--data", n.Data)...).CombinedOutput()
	return string(out), err
}

// checkRevoked expects that a client's key is refused.
func checkRevoked(t *testing.T, c *node.Client) {
	t.Helper()
	var head string
	if err := c.Call(context.Background(), &head, "eth_blockNumber"); err == nil || !strings.Contains(err.Error(), "invalid project id") {
		t.Errorf("a revoked key: %v", err)
	}
}

func keyOf(c *node.Client) string { return c.URL[strings.LastIndexByte(c.URL, '/')+1:] }

func checkHead(t *testing.T, c *node.Client) {
	t.Helper()
	var head string
	if err := c.Call(context.Background(), &head, "eth_blockNumber"); err != nil || head != "0xf0" {
		t.Errorf("the head is %s, %v; expected block 240", head, err)
	}
}

func expectWords(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, word := range words {
		if !strings.Contains(text, word) {
			t.Errorf("%q is missing in:\n%s", word, text)
		}
	}
}

// fill writes a file until the disk is full.
func fill(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	for chunk := make([]byte, 4096); err == nil; {
		_, err = f.Write(chunk)
	}
	return errors.Join(err, f.Close())
}

func bytesBelow(t *testing.T, dir string) (sum int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return sum
}
