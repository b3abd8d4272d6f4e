package pebble_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ashlar/kv"
	"ashlar/kv/pebble"

	lsm "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

var rows = &kv.Table{ID: 1, Name: "rows", Kind: kv.List}

func TestLockedInProcess(t *testing.T) {
	for name, fs := range map[string]vfs.FS{"Disk": nil, "Memory": vfs.NewMem()} {
		t.Run(name, func(t *testing.T) {
			o := pebble.Options{Path: filepath.Join(t.TempDir(), "deep", "store"), FS: fs}
			s := open(t, o)
			_, err := pebble.Open(o)
			if !errors.Is(err, kv.ErrInUse) {
				t.Fatalf("second Open: got %v, expected ErrInUse", err)
			}
			for _, want := range []string{o.Path, fmt.Sprint(os.Getpid())} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("second Open: %q does not name %s", err, want)
				}
			}
			closeStore(t, s)
			closeStore(t, open(t, o))
		})
	}
}

// holdEnv names the directory that TestHoldStore is to hold; set by TestLockedByProcess.
const holdEnv = "KV_PEBBLE_TEST_HOLD"

// TestHoldStore is the other process of TestLockedByProcess.
func TestHoldStore(t *testing.T) {
	dir := os.Getenv(holdEnv)
	if dir == "" {
		t.Skip("runs only as a process of TestLockedByProcess")
	}
	s := open(t, pebble.Options{Path: dir})
	fmt.Println("holding")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the parent has seen enough
	closeStore(t, s)
}

func TestLockedByProcess(t *testing.T) {
	dir := t.TempDir()
	holder, release := startHolder(t, "TestHoldStore", holdEnv, dir)
	_, err := pebble.Open(pebble.Options{Path: dir})
	if !errors.Is(err, kv.ErrInUse) || !strings.Contains(err.Error(), fmt.Sprint("process ", holder.Process.Pid)) {
		t.Errorf("Open: got %v, expected ErrInUse with process %d", err, holder.Process.Pid)
	}
	// In containers, both processes usually have the ID 1.
	if err := os.WriteFile(filepath.Join(dir, "owner.pid"), fmt.Appendln(nil, os.Getpid()), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err = pebble.Open(pebble.Options{Path: dir})
	if want := fmt.Sprintf("process %d of another container", os.Getpid()); !errors.Is(err, kv.ErrInUse) || !strings.Contains(err.Error(), want) {
		t.Errorf("Open, of a store held by a process with the same ID: got %v, expected ErrInUse with %q", err, want)
	}
	release()
	closeStore(t, open(t, pebble.Options{Path: dir}))
}

// startHolder starts a test as another process, with a variable that names a directory, and returns once that prints "holding". release
// ends its input and waits until it has ended.
func startHolder(t *testing.T, test, variable, dir string) (holder *exec.Cmd, release func()) {
	t.Helper()
	holder = exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+test+"$")
	holder.Env = append(os.Environ(), variable+"="+dir)
	stdin, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stdout); lines.Text() != "holding"; {
		if !lines.Scan() {
			t.Fatalf("the process of %s holds nothing", test)
		}
	}
	return holder, func() {
		t.Helper()
		if err := errors.Join(stdin.Close(), holder.Wait()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestOwnerFileIsOnlyText checks that the owner's file decides nothing.
func TestOwnerFileIsOnlyText(t *testing.T) {
	for _, text := range []string{"", "0\n", "-5", "not a number", strings.Repeat("9", 100), "1\n"} {
		dir := t.TempDir()
		owner := filepath.Join(dir, "owner.pid")
		if err := os.WriteFile(owner, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s := open(t, pebble.Options{Path: dir})
		if err := os.WriteFile(owner, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := pebble.Open(pebble.Options{Path: dir}); !errors.Is(err, kv.ErrInUse) {
			t.Errorf("owner file %q: got %v, expected ErrInUse", text, err)
		}
		if err := os.Remove(owner); err != nil {
			t.Fatal(err)
		}
		if _, err := pebble.Open(pebble.Options{Path: dir}); !errors.Is(err, kv.ErrInUse) {
			t.Errorf("no owner file: got %v, expected ErrInUse", err)
		}
		closeStore(t, s)
	}
}

func TestForeignDirectory(t *testing.T) {
	for name, fill := range map[string]func(t *testing.T, dir string){
		"Files": func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "letter.txt"), []byte("dear"), 0o644); err != nil {
				t.Fatal(err)
			}
		},
		"OtherComparer": func(t *testing.T, dir string) {
			db, err := lsm.Open(dir, &lsm.Options{Logger: quiet{}})
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(db.Set([]byte("k"), []byte("v"), lsm.Sync), db.Close()); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			fill(t, dir)
			before := contents(t, dir)
			_, err := pebble.Open(pebble.Options{Path: dir})
			if !errors.Is(err, kv.ErrForeign) || !strings.Contains(err.Error(), dir) {
				t.Errorf("got %v, expected ErrForeign with the directory's name", err)
			}
			if after := contents(t, dir); after != before {
				t.Errorf("the directory changed from\n%s to\n%s", before, after)
			}
		})
	}
}

// TestAccept refuses a store for what it holds: some of that is in tables, some
// in the log only. Its files stay as they are, and it is not locked afterwards.
func TestAccept(t *testing.T) {
	ctx := context.Background()
	o := pebble.Options{Path: t.TempDir()}
	asked := 0
	refused := errors.New("refused")
	o.Accept = func(r kv.Reader) error {
		asked++
		if v, err := r.Get(ctx, rows, []byte("a"), 1, nil); err != nil || string(v) != "compacted" {
			t.Errorf("Accept is shown %q, %v", v, err)
		}
		if v, err := r.Pointer(ctx, "p"); err != nil || string(v) != "logged" {
			t.Errorf("Accept is shown the pointer %q, %v", v, err)
		}
		return refused
	}
	s := open(t, o) // which is new, so that there is nothing to accept
	put(t, s, "a", 1, []byte("compacted"))
	if err := errors.Join(s.Compact(ctx), s.CompareAndSet(ctx, "p", nil, []byte("logged"))); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	if asked > 0 {
		t.Error("Accept was asked of a new store")
	}
	before := contents(t, o.Path)
	if _, err := pebble.Open(o); !errors.Is(err, refused) || !strings.Contains(err.Error(), o.Path) {
		t.Errorf("got %v, expected what Accept returned and the directory's name", err)
	}
	if after := contents(t, o.Path); after != before {
		t.Errorf("the directory changed from\n%s to\n%s", before, after)
	}
	refused = nil
	closeStore(t, open(t, o))
	if asked != 2 {
		t.Errorf("Accept was asked %d times, expected 2", asked)
	}
}

// TestExisting opens empty and missing directories, in which a store must exist.
func TestExisting(t *testing.T) {
	for _, o := range []pebble.Options{{Options: kv.Options{Existing: true}}, {Options: kv.Options{ReadOnly: true}}} {
		dir := t.TempDir()
		for _, o.Path = range []string{dir, filepath.Join(dir, "missing")} {
			if _, err := pebble.Open(o); !errors.Is(err, kv.ErrNotFound) || !strings.Contains(err.Error(), o.Path) {
				t.Errorf("%+v: %v, expected kv.ErrNotFound with the directory's name", o, err)
			}
		}
		if after := contents(t, dir); after != "" {
			t.Errorf("%+v: the directory has now\n%s", o, after)
		}
	}
}

type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(string, ...any) {}

// contents lists a directory with all that is in its files.
func contents(t *testing.T, dir string) (list string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		list += fmt.Sprintf("%s %d %x\n", e.Name(), len(content), sha256.Sum256(content))
	}
	return list
}

func TestOpenErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]pebble.Options{
		"NoPath":           {},
		"PathIsFile":       {Path: file},
		"PathBelowFile":    {Path: filepath.Join(file, "store")},
		"NegativeCache":    {Path: t.TempDir(), Options: kv.Options{CacheBytes: -1}},
		"HugeMemTable":     {Path: t.TempDir(), Options: kv.Options{BufferBytes: 1 << 40}},
		"NegativeMemTable": {Path: t.TempDir(), Options: kv.Options{BufferBytes: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := pebble.Open(o)
			if err == nil {
				closeStore(t, s)
				t.Error("no error")
			} else if errors.Is(err, kv.ErrInUse) {
				t.Errorf("got %v, which is not the reason", err)
			}
		})
	}
}

// TestOpenAfterBrokenCreation opens a directory in which the first Open died at
// any of its changes to the disk.
func TestOpenAfterBrokenCreation(t *testing.T) {
	whole := vfs.NewCrashableMem()
	counting := &counter{FS: whole}
	closeStore(t, open(t, pebble.Options{Path: "store", FS: counting}))
	for n := 1; n <= counting.files; n++ {
		fs := vfs.NewCrashableMem()
		var crashed *vfs.MemFS
		s := open(t, pebble.Options{Path: "store", FS: &counter{FS: fs, at: n, then: func() {
			crashed = fs.CrashClone(vfs.CrashCloneCfg{})
		}}})
		again, err := pebble.Open(pebble.Options{Path: "store", FS: crashed})
		if err != nil {
			t.Errorf("after a crash at file %d of %d: %v", n, counting.files, err)
		} else {
			closeStore(t, again)
		}
		closeStore(t, s)
	}
}

// counter counts the files made and calls then after file number at.
type counter struct {
	vfs.FS
	files int
	at    int
	then  func()
}

func (c *counter) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := c.FS.Create(name, category)
	if c.files++; c.files == c.at {
		c.then()
	}
	return f, err
}

func closeStore(t testing.TB, s *pebble.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func put(t testing.TB, s *pebble.Store, partition string, sort uint64, value []byte) {
	t.Helper()
	b := s.NewBatch()
	b.Put(rows, []byte(partition), sort, value)
	if err := s.Write(context.Background(), b); err != nil {
		t.Fatal(err)
	}
}

// TestOpenAdvises: the error of a store that the user or the limits of the process keep closed says what is needed.
func TestOpenAdvises(t *testing.T) {
	for want, fails := range map[string]struct {
		at  errorfs.OpKind
		err error
	}{
		"want the user to whom the data directory belongs":   {errorfs.OpList, syscall.EACCES},
		"want a higher limit of open files: ulimit":          {errorfs.OpCreate, syscall.EMFILE},
		"want a higher limit of open files of all processes": {errorfs.OpCreate, syscall.ENFILE},
	} {
		memory := vfs.NewMem()
		closeStore(t, open(t, pebble.Options{Path: "store", FS: memory}))
		failing := errorfs.Wrap(memory, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == fails.at {
				return fails.err
			}
			return nil
		}))
		if _, err := pebble.Open(pebble.Options{Path: "store", FS: failing}); !errors.Is(err, fails.err) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, expected %q", fails.err, err, want)
		}
	}
}

// TestOpenErrorsNameAPathOnce: the error of the system has the path of what could not be opened.
func TestOpenErrorsNameAPathOnce(t *testing.T) {
	for at, path := range map[errorfs.OpKind]string{errorfs.OpList: "/data/store", errorfs.OpCreate: "/data/store/owner.pid"} {
		memory := vfs.NewMem()
		closeStore(t, open(t, pebble.Options{Path: "/data/store", FS: memory}))
		failing := errorfs.Wrap(memory, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind == at {
				return &fs.PathError{Op: "open", Path: op.Path, Err: syscall.EIO}
			}
			return nil
		}))
		_, err := pebble.Open(pebble.Options{Path: "/data/store", FS: failing})
		if !errors.Is(err, syscall.EIO) || strings.Count(err.Error(), "/data/store") != 1 || !strings.Contains(err.Error(), "open "+path+": ") {
			t.Errorf("%v, expected %s once", err, path)
		}
	}
}

// TestReadOnlyOnFullDisk: a store that is only read opens on a full disk.
func TestReadOnlyOnFullDisk(t *testing.T) {
	memory := vfs.NewMem()
	s := open(t, pebble.Options{Path: "store", FS: memory})
	put(t, s, "a", 1, []byte("kept"))
	closeStore(t, s)
	full := errorfs.Wrap(memory, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite || op.Kind == errorfs.OpCreate {
			return syscall.ENOSPC
		}
		return nil
	}))
	s = open(t, pebble.Options{Path: "store", FS: full, Options: kv.Options{ReadOnly: true}})
	if value, err := s.Get(t.Context(), rows, []byte("a"), 1, nil); err != nil || string(value) != "kept" {
		t.Errorf("%q, %v, expected the row", value, err)
	}
	closeStore(t, s)
}
