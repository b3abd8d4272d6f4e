// Package backup copies directories of files to a target, a folder or an S3 bucket, and
// back. A target keeps each content once, under its SHA-256, so a backup stores only what
// changed since the last one. docs/format.md draws it.
//
// The package knows nothing about stores: the caller passes directories that do not change
// while they are copied.
package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	format        = "ashlar-backup-1"
	objectsFolder = "objects/"
	backupsFolder = "backups/"
	suffix        = ".json"
	timeFormat    = "20060102T150405.000000Z"

	// maxManifest bounds a manifest in bytes: 200 bytes for each of a million files.
	maxManifest = 200 << 20
)

// Manifest lists the files of a backup.
type Manifest struct {
	Format  string    `json:"format"`
	Made    time.Time `json:"made"`
	Version string    `json:"version"` // of the program that made it
	Stores  []Store   `json:"stores"`
	Lacks   []string  `json:"lacks,omitempty"` // names of stores that were wanted and could not be copied
	// Partial says that some stores were chosen, so there may be others. Backups of older versions do not have it.
	Partial bool `json:"partial,omitempty"`
}

// Store is one directory in a backup.
type Store struct {
	Name  string `json:"name"` // its slash-separated path in the data directory
	Files []File `json:"files"`
}

// File is one file of a Store.
type File struct {
	Name     string `json:"name"`
	Bytes    int64  `json:"bytes"`
	SHA256   string `json:"sha256"`
	Modified int64  `json:"modified"` // in Unix nanoseconds
}

// Bytes returns the size of all files.
func (m *Manifest) Bytes() (sum int64) {
	for _, s := range m.Stores {
		sum += s.bytes()
	}
	return sum
}

func (s *Store) bytes() (sum int64) {
	for _, f := range s.Files {
		sum += f.Bytes
	}
	return sum
}

// names returns the names of the stores.
func (m *Manifest) names() (names []string) {
	for _, s := range m.Stores {
		names = append(names, s.Name)
	}
	return names
}

// Only returns the manifest with the named stores, or an error if one of them is missing.
func (m *Manifest) Only(names []string) (*Manifest, error) {
	part := *m
	part.Stores, part.Lacks, part.Partial = nil, nil, false // all that is wanted
	for _, name := range names {
		at := slices.IndexFunc(m.Stores, func(s Store) bool { return s.Name == name })
		if at < 0 && slices.Contains(m.Lacks, name) {
			return nil, fmt.Errorf("the backup of %s lacks %s, which could not be copied then (want another one, see ashlar restore --list)", m.Made.Format(time.RFC3339), name)
		}
		if at < 0 {
			return nil, fmt.Errorf("the backup of %s has no %s, only %s (want --backup NAME of one that has it; see ashlar restore --list)", m.Made.Format(time.RFC3339), name, strings.Join(m.names(), ", "))
		}
		part.Stores = append(part.Stores, m.Stores[at])
	}
	return &part, nil
}

// check returns an error if the manifest cannot be restored. Names must not lead out of the
// directory to which they are restored.
func (m *Manifest) check() error {
	if m.Format != format {
		return fmt.Errorf("unknown format %q (want %s)", m.Format, format)
	}
	for _, s := range m.Stores {
		if !filepath.IsLocal(s.Name) || path.Clean(s.Name) != s.Name || strings.HasPrefix(s.Name, ".") {
			return fmt.Errorf("store %q: expected a relative path", s.Name)
		}
		for _, f := range s.Files {
			if !filepath.IsLocal(f.Name) || strings.ContainsAny(f.Name, `/\`) || f.Bytes < 0 {
				return fmt.Errorf("store %s: file %q with %d bytes: expected a plain file name", s.Name, f.Name, f.Bytes)
			}
			if sum, err := hex.DecodeString(f.SHA256); err != nil || len(sum) != sha256.Size {
				return fmt.Errorf("store %s: file %s: hash %q: expected 64 hexadecimal digits", s.Name, f.Name, f.SHA256)
			}
		}
	}
	return nil
}

// object returns the name of the object with this hash.
func object(sum string) string { return objectsFolder + sum[:2] + "/" + sum }

// Names lists the backups of a target, oldest first.
func Names(ctx context.Context, t Target) (names []string, err error) {
	err = t.List(ctx, backupsFolder, func(name string, _ int64) {
		if name, ok := strings.CutSuffix(strings.TrimPrefix(name, backupsFolder), suffix); ok {
			names = append(names, name)
		}
	})
	slices.Sort(names)
	return names, err
}

// Whole returns the name of the newest backup that has all stores of its time; "" if there is none. Backups whose manifest cannot be
// read are left out.
func Whole(ctx context.Context, t Target) (string, error) {
	names, err := Names(ctx, t)
	if err != nil {
		return "", err
	}
	for _, name := range slices.Backward(names) {
		if m, err := Load(ctx, t, name); err == nil && !m.Partial && len(m.Lacks) == 0 {
			return name, nil
		}
	}
	return "", ctx.Err()
}

// Load reads the manifest of a backup and checks it against the hash in its name. An empty
// name is the newest backup.
func Load(ctx context.Context, t Target, name string) (*Manifest, error) {
	if name == "" {
		names, err := Names(ctx, t)
		if err != nil {
			return nil, err
		}
		if len(names) == 0 {
			return nil, None(t)
		}
		name = names[len(names)-1]
	}
	m, err := load(ctx, t, name)
	if err != nil {
		return nil, fmt.Errorf("backup %s in %s: %w", name, t, err)
	}
	return m, nil
}

func load(ctx context.Context, t Target, name string) (*Manifest, error) {
	_, want, ok := strings.Cut(name, "-")
	if !ok || strings.ContainsAny(name, `/\`) {
		return nil, fmt.Errorf("%w: expected a name as ashlar restore --list prints it", ErrNoBackup)
	}
	content, err := t.Get(ctx, backupsFolder+name+suffix)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(content, maxManifest+1))
	if err := errors.Join(err, content.Close()); err != nil {
		return nil, err
	}
	if len(text) > maxManifest {
		return nil, fmt.Errorf("the manifest has more than %d bytes", maxManifest)
	}
	if sum := sha256.Sum256(text); hex.EncodeToString(sum[:]) != want {
		return nil, fmt.Errorf("%w: its manifest has the hash %x, expected that in its name", ErrDamaged, sum)
	}
	m := new(Manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("the manifest: %w", err)
	}
	return m, m.check()
}

// timeOf returns when a backup was made, according to its name; zero for a file that is not a backup.
func timeOf(name string) time.Time {
	at, _, _ := strings.Cut(name, "-")
	made, err := time.Parse(timeFormat, at)
	if err != nil {
		return time.Time{}
	}
	return made
}

// save stores a manifest and returns the name of the backup.
func (m *Manifest) save(ctx context.Context, t Target) (name string, err error) {
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return "", err
	}
	name = fmt.Sprintf("%s-%x", m.Made.Format(timeFormat), sha256.Sum256(text))
	return name, t.Put(ctx, backupsFolder+name+suffix, strings.NewReader(string(text)), int64(len(text)))
}
