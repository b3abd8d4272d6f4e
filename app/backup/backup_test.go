package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// source makes a directory with the given files.
func source(t *testing.T, name string, files map[string]string) Source {
	t.Helper()
	dir := t.TempDir()
	for file, text := range files {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Source{name, dir}
}

// noise returns n bytes that depend on seed.
func noise(seed uint64, n int) string {
	out := make([]byte, n)
	for i, r := 0, rand.New(rand.NewPCG(seed, 9)); i < n; i++ {
		out[i] = byte(r.Uint32())
	}
	return string(out)
}

// contents returns the files of a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		text, readErr := os.ReadFile(filepath.Join(dir, entry.Name()))
		err = errors.Join(err, readErr)
		all[entry.Name()] = string(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func mustMake(t *testing.T, target Target, sources ...Source) Made {
	t.Helper()
	made, err := Make(t.Context(), target, sources, Options{Version: "test"}, new(Progress))
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// mustFetch restores a backup and compares it with the expected files of its stores.
func mustFetch(t *testing.T, target Target, name string, want map[string]map[string]string) {
	t.Helper()
	m, err := Load(t.Context(), target, name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := errors.Join(Fetch(t.Context(), target, m, dir, new(Progress)), Check(t.Context(), target, m, new(Progress))); err != nil {
		t.Fatal(err)
	}
	if len(m.Stores) != len(want) {
		t.Errorf("%d stores, expected %d", len(m.Stores), len(want))
	}
	for store, files := range want {
		if got := contents(t, filepath.Join(dir, store)); !maps.Equal(got, files) {
			t.Errorf("store %s of backup %s: %d files with other names or contents than expected: %v", store, name, len(got), slices.Sorted(maps.Keys(got)))
		}
	}
}

// testTarget makes three backups, of which the second adds what has changed only, and
// removes the oldest.
func testTarget(t *testing.T, target Target) {
	big := noise(1, 20<<20) // more than one part of an upload
	first := map[string]string{"000001.sst": big, "000002.sst": noise(2, 5000), "empty": "", "MANIFEST-1": "one"}
	accounts := map[string]string{"000001.log": "keys", "same.sst": noise(2, 5000)}
	sources := []Source{source(t, "accounts", accounts), source(t, "networks/sepolia", first)}
	if err := os.Mkdir(filepath.Join(sources[1].Dir, "folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	a := mustMake(t, target, sources...)
	if want := int64(len(big) + 2*5000 + len("one") + len("keys")); a.Bytes != want {
		t.Errorf("a backup of %d bytes, expected %d", a.Bytes, want)
	}
	if b := mustMake(t, target, sources...); b.Stored != 0 || b.Bytes != a.Bytes {
		t.Errorf("a second backup of the same: %+v, expected nothing stored", b)
	}
	second := maps.Clone(first)
	delete(second, "000002.sst")
	second["000003.sst"], second["MANIFEST-1"] = noise(3, 7000), "two"
	if err := errors.Join(
		os.Remove(filepath.Join(sources[1].Dir, "000002.sst")),
		os.WriteFile(filepath.Join(sources[1].Dir, "000003.sst"), []byte(second["000003.sst"]), 0o600),
		os.WriteFile(filepath.Join(sources[1].Dir, "MANIFEST-1"), []byte("two"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	c := mustMake(t, target, sources...)
	if want := int64(7000 + len("two")); c.Stored != want {
		t.Errorf("a third backup stored %d bytes, expected %d", c.Stored, want)
	}
	mustFetch(t, target, a.Name, map[string]map[string]string{"accounts": accounts, "networks/sepolia": first})
	mustFetch(t, target, "", map[string]map[string]string{"accounts": accounts, "networks/sepolia": second})

	if removed, err := Prune(t.Context(), target, 1); err != nil || removed == 0 {
		t.Errorf("removed %d old backups, %v", removed, err)
	}
	mustFetch(t, target, c.Name, map[string]map[string]string{"accounts": accounts, "networks/sepolia": second})
	if _, err := Load(t.Context(), target, a.Name); !errors.Is(err, ErrNoBackup) {
		t.Errorf("a removed backup: %v, expected ErrNoBackup", err)
	}
	objects := 0
	if err := target.List(t.Context(), objectsFolder, func(string, int64) { objects++ }); err != nil || objects != 6 {
		t.Errorf("%d contents are left, expected the 6 of the last backup, %v", objects, err)
	}
}

func TestFolder(t *testing.T) { testTarget(t, folder(filepath.Join(t.TempDir(), "deep", "backups"))) }

// TestRehash checks that a file whose size and time are those of the last backup is read
// only if that is asked for.
func TestRehash(t *testing.T) {
	target := folder(t.TempDir())
	s := source(t, "networks/a", map[string]string{"f": "before"})
	mustMake(t, target, s)
	path := filepath.Join(s.Dir, "f")
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(path, []byte("after!"), 0o600), os.Chtimes(path, info.ModTime(), info.ModTime())); err != nil {
		t.Fatal(err)
	}
	if made := mustMake(t, target, s); made.Stored != 0 {
		t.Errorf("stored %d bytes of a file with the same size and time", made.Stored)
	}
	made, err := Make(t.Context(), target, []Source{s}, Options{Rehash: true}, new(Progress))
	if err != nil || made.Stored != 6 {
		t.Errorf("stored %d bytes, expected 6, %v", made.Stored, err)
	}
}

// errBroken is what a broken target returns.
var errBroken = errors.New("broken")

// breaking is a target that breaks at the given operation and stays broken.
type breaking struct {
	Target
	mu   sync.Mutex
	left int // guarded by mu
}

func (b *breaking) next() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.left--; b.left < 0 {
		return errBroken
	}
	return nil
}

func (b *breaking) List(ctx context.Context, folder string, found func(string, int64)) error {
	return errors.Join(b.next(), b.Target.List(ctx, folder, found))
}

func (b *breaking) Put(ctx context.Context, name string, content io.Reader, bytes int64) error {
	if err := b.next(); err != nil {
		content = io.MultiReader(io.LimitReader(content, bytes/2), broken{}) // half of it is written
		return b.Target.Put(ctx, name, content, bytes)
	}
	return b.Target.Put(ctx, name, content, bytes)
}

func (b *breaking) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	content, err := b.Target.Get(ctx, name)
	if b.next() != nil && err == nil {
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(io.LimitReader(content, 2), broken{}), content}, nil
	}
	return content, err
}

func (b *breaking) Remove(ctx context.Context, name string) error {
	if err := b.next(); err != nil {
		return err
	}
	return b.Target.Remove(ctx, name)
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errBroken }

// TestInterrupted ends a backup, the removal of old ones, and a restore at every operation.
// The earlier backup stays whole, and doing the same again completes it.
func TestInterrupted(t *testing.T) {
	target := folder(t.TempDir())
	old := map[string]string{"1.sst": noise(1, 3000), "2.sst": noise(2, 3000)}
	s := source(t, "networks/a", old)
	first := mustMake(t, target, s)
	for i := range 6 {
		if err := os.WriteFile(filepath.Join(s.Dir, fmt.Sprintf("new%d.sst", i)), []byte(noise(uint64(10+i), 4000)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	now := contents(t, s.Dir)
	done := 0
	for at := 0; ; at++ {
		_, err := Make(t.Context(), &breaking{Target: target, left: at}, []Source{s}, Options{}, new(Progress))
		if err == nil {
			break
		}
		if !errors.Is(err, errBroken) {
			t.Fatalf("operation %d: %v", at, err)
		}
		mustFetch(t, target, first.Name, map[string]map[string]string{"networks/a": old})
		done++
	}
	if done < 5 {
		t.Errorf("a backup was interrupted at %d operations, expected at least 5", done)
	}
	mustFetch(t, target, "", map[string]map[string]string{"networks/a": now})

	m, err := Load(t.Context(), target, "")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for at := 0; ; at++ {
		err := Fetch(t.Context(), &breaking{Target: target, left: at}, m, dir, new(Progress))
		for name, text := range contents(t, filepath.Join(dir, "networks", "a")) {
			if now[name] != text {
				t.Fatalf("operation %d: file %s has its name and is not whole", at, name)
			}
		}
		if err == nil {
			break
		}
	}
	for at := 0; ; at++ {
		_, err := Prune(t.Context(), &breaking{Target: target, left: at}, 1)
		mustFetch(t, target, "", map[string]map[string]string{"networks/a": now})
		if err == nil {
			break
		}
	}
}

// TestDamaged flips one bit in each file of a backup. Nothing that depends on it is restored.
func TestDamaged(t *testing.T) {
	target := folder(t.TempDir())
	made := mustMake(t, target, source(t, "accounts", map[string]string{"1.log": "keys"}), source(t, "networks/a", map[string]string{"1.sst": noise(1, 100)}))
	var names []string
	for _, folder := range []string{objectsFolder, backupsFolder} {
		if err := target.List(t.Context(), folder, func(name string, _ int64) { names = append(names, name) }); err != nil {
			t.Fatal(err)
		}
	}
	if len(names) != 3 {
		t.Fatalf("a backup has the objects %v, expected 3", names)
	}
	for _, name := range names {
		path := target.path(name)
		whole, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for what, text := range map[string][]byte{
			"a flipped bit": append([]byte{whole[0] ^ 1}, whole[1:]...), "cut": whole[:len(whole)-1], "longer": append(bytes.Clone(whole), 0), "empty": nil,
		} {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			m, err := Load(t.Context(), target, made.Name)
			if err == nil {
				dir := t.TempDir()
				err = Fetch(t.Context(), target, m, dir, new(Progress))
				if checked := Check(t.Context(), target, m, new(Progress)); checked == nil {
					t.Errorf("%s, %s: Check finds nothing", name, what)
				}
			}
			if err == nil {
				t.Errorf("%s, %s: restored", name, what)
			}
		}
		if err := os.WriteFile(path, whole, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManifestNames checks that no name in a manifest leads out of the directory.
func TestManifestNames(t *testing.T) {
	sum := strings.Repeat("ab", 32)
	for name, m := range map[string]Manifest{
		"format":        {Format: "ashlar-backup-9"},
		"store above":   {Format: format, Stores: []Store{{Name: "../networks/a"}}},
		"absolute":      {Format: format, Stores: []Store{{Name: "/etc"}}},
		"store hidden":  {Format: format, Stores: []Store{{Name: ".restore"}}},
		"store twisted": {Format: format, Stores: []Store{{Name: "networks/../../a"}}},
		"file above":    {Format: format, Stores: []Store{{"accounts", []File{{"../x", 1, sum, 0}}}}},
		"file below":    {Format: format, Stores: []Store{{"accounts", []File{{"x/y", 1, sum, 0}}}}},
		"file empty":    {Format: format, Stores: []Store{{"accounts", []File{{"", 1, sum, 0}}}}},
		"negative":      {Format: format, Stores: []Store{{"accounts", []File{{"x", -1, sum, 0}}}}},
		"hash":          {Format: format, Stores: []Store{{"accounts", []File{{"x", 1, "../../x", 0}}}}},
	} {
		target := folder(t.TempDir())
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		hash := sha256.Sum256(text)
		backup := "20260101T000000Z-" + hex.EncodeToString(hash[:])
		if err := target.Put(t.Context(), backupsFolder+backup+suffix, bytes.NewReader(text), int64(len(text))); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(t.Context(), target, backup); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestOpenTarget(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "nonsense")
	for place, want := range map[string]string{
		"ftp://host/x": "unknown kind of target", "s3://": "missing bucket", "s3:/bucket/x": "unknown kind of target", "s3:bucket": "unknown kind of target", "s3://bucket/x": "AWS_ENDPOINT_URL",
	} {
		if _, err := OpenTarget(place); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", place, err, want)
		}
	}
	if _, err := Load(t.Context(), folder(t.TempDir()), ""); !errors.Is(err, ErrNoBackup) {
		t.Errorf("an empty target: %v, expected ErrNoBackup", err)
	}
}
