package backup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// parallel is the number of files that are copied at once.
const parallel = 4

// Source is a directory to copy. Its files must not change, and subdirectories are left out.
type Source struct {
	Name string // of the store, see Store.Name
	Dir  string
}

// Options are the options of Make.
type Options struct {
	Version string   // recorded in the manifest
	Rehash  bool     // read every file, even if its size and time are those of the last backup
	Lacks   []string // names of stores that should be in the backup and cannot be copied
	Partial bool     // the sources and Lacks are some of the stores, not all
}

// Made describes a backup that was made.
type Made struct {
	Name   string           // of the backup
	Bytes  int64            // of all its files
	Stored int64            // of the contents that the target did not have
	Stores map[string]int64 // bytes by Store.Name
	Lacks  []string         // see Manifest
	Took   time.Duration
}

// Make copies directories to a target. A backup that fails halfway leaves contents that
// the next one uses, and no manifest.
func Make(ctx context.Context, t Target, sources []Source, o Options, p *Progress) (Made, error) {
	began := time.Now()
	last, lastMade, err := newest(ctx, t)
	if err != nil {
		return Made{}, err
	}
	m := maker{target: t, progress: p, known: make(map[known]string), has: make(map[string]int64)}
	if last != nil && !o.Rehash {
		m.remember(last)
	}
	if err := m.list(ctx); err != nil {
		return Made{}, err
	}
	made := Manifest{Format: format, Made: after(lastMade), Version: o.Version, Lacks: o.Lacks, Partial: o.Partial}
	for _, source := range sources {
		files, err := list(source)
		if err != nil {
			return Made{}, err
		}
		made.Stores = append(made.Stores, Store{source.Name, files})
	}
	p.begin(made.Bytes())
	defer p.end()
	for i, source := range sources {
		if err := m.copy(ctx, source, made.Stores[i].Files); err != nil {
			return Made{}, fmt.Errorf("back up %s: %w", source.Name, err)
		}
	}
	if f, ok := t.(folder); ok { // others take an object durably
		if err := f.settle(ctx); err != nil {
			return Made{}, err
		}
	}
	name, err := made.save(ctx, t)
	if err != nil {
		return Made{}, err
	}
	if err := m.checkStored(ctx, name, &made); err != nil {
		return Made{}, err
	}
	sizes := make(map[string]int64)
	for _, s := range made.Stores {
		sizes[s.Name] = s.bytes()
	}
	return Made{Name: name, Bytes: made.Bytes(), Stored: p.moved.Load(), Stores: sizes, Lacks: made.Lacks, Took: time.Since(began)}, nil
}

// newest returns the manifest of the last backup and its time, or nothing if there is none. A damaged manifest is nil, because
// a new backup needs only its time: one file on the target does not end all backups.
func newest(ctx context.Context, t Target) (last *Manifest, made time.Time, err error) {
	names, err := Names(ctx, t)
	if err != nil || len(names) == 0 {
		return nil, made, err
	}
	name := names[len(names)-1]
	last, err = Load(ctx, t, name)
	switch {
	case errors.Is(err, ErrNoBackup): // it was removed meanwhile
		return nil, made, nil
	case errors.Is(err, ErrDamaged):
		slog.Warn("the last backup is damaged, so all files are read again", "error", err)
		return nil, timeOf(name), nil
	case err != nil:
		return nil, made, err
	}
	return last, last.Made, nil
}

// after returns the time of a backup, which orders backups by its name. It is later than that of
// the last one, even if the clock was set back since. last may be zero.
func after(last time.Time) time.Time {
	now := time.Now().UTC().Truncate(time.Microsecond)
	if !now.After(last) {
		return last.Add(time.Microsecond)
	}
	return now
}

// list returns the files of a directory, without their hashes.
func list(s Source) (files []File, err error) {
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("back up %s: %w", s.Name, err)
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			continue
		}
		info, err := entry.Info()
		if err != nil {
			return nil, fmt.Errorf("back up %s: %w", s.Name, err)
		}
		files = append(files, File{Name: entry.Name(), Bytes: info.Size(), Modified: info.ModTime().UnixNano()})
	}
	return files, nil
}

// known identifies a file whose hash is known from the last backup.
type known struct {
	store, file     string
	bytes, modified int64
}

// maker copies files to a target.
type maker struct {
	target   Target
	progress *Progress
	known    map[known]string // hash
	has      map[string]int64 // size by object
}

func (m *maker) remember(last *Manifest) {
	for _, s := range last.Stores {
		for _, f := range s.Files {
			m.known[known{s.Name, f.Name, f.Bytes, f.Modified}] = f.SHA256
		}
	}
}

// list sets has to the contents that the target has now.
func (m *maker) list(ctx context.Context) error {
	clear(m.has)
	return m.target.List(ctx, objectsFolder, func(name string, bytes int64) { m.has[name] = bytes })
}

// stored reports whether the target has a content, with the right size.
func (m *maker) stored(sum string, bytes int64) bool {
	got, ok := m.has[object(sum)]
	return ok && got == bytes
}

// copy stores the contents of a source's files, and sets their hashes.
func (m *maker) copy(ctx context.Context, s Source, files []File) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range files {
		f := &files[i]
		group.Go(func() error {
			m.progress.at(s.Name)
			defer m.progress.done.Add(f.Bytes)
			return m.store(ctx, filepath.Join(s.Dir, f.Name), known{s.Name, f.Name, f.Bytes, f.Modified}, &f.SHA256)
		})
	}
	return group.Wait()
}

// store stores the content of a file if the target does not have it.
func (m *maker) store(ctx context.Context, path string, k known, sum *string) error {
	if hash, ok := m.known[k]; ok && m.stored(hash, k.bytes) {
		*sum = hash
		return ctx.Err()
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	hash := sha256.New()
	n, err := io.Copy(hash, cancelable{ctx, file})
	if err != nil {
		return err
	}
	if n != k.bytes {
		return fmt.Errorf("%s has %d bytes, and had %d when the backup began", path, n, k.bytes)
	}
	*sum = hex.EncodeToString(hash.Sum(nil))
	if m.stored(*sum, k.bytes) {
		return nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := m.target.Put(ctx, object(*sum), file, k.bytes); err != nil {
		return err
	}
	m.progress.moved.Add(k.bytes)
	return nil
}

// checkStored removes a backup again if a content is missing, because another process
// removed old backups meanwhile.
func (m *maker) checkStored(ctx context.Context, name string, made *Manifest) error {
	if err := m.list(ctx); err != nil {
		return err
	}
	for _, s := range made.Stores {
		for _, f := range s.Files {
			if !m.stored(f.SHA256, f.Bytes) {
				err := fmt.Errorf("content %s of %s/%s is missing in %s: make one backup at a time; the backup is removed, try again", f.SHA256, s.Name, f.Name, m.target)
				return errors.Join(err, m.target.Remove(ctx, backupsFolder+name+suffix))
			}
		}
	}
	return nil
}
