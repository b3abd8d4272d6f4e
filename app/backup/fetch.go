package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// ErrDamaged is returned if a content or a manifest does not have the hash that it should have.
var ErrDamaged = errors.New("the backup is damaged")

// Fetch writes the stores of a backup below dir. A file gets its name once its hash has
// been checked. Files that an interrupted Fetch left in dir are used if their hash is
// right; other files there are removed.
func Fetch(ctx context.Context, t Target, m *Manifest, dir string, p *Progress) error {
	p.begin(m.Bytes())
	defer p.end()
	for _, s := range m.Stores {
		if err := fetch(ctx, t, s, filepath.Join(dir, filepath.FromSlash(s.Name)), p); err != nil {
			return fmt.Errorf("restore %s: %w", s.Name, err)
		}
	}
	return nil
}

func fetch(ctx context.Context, t Target, s Store, dir string, p *Progress) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := removeOthers(dir, s.Files); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, f := range s.Files {
		group.Go(func() error {
			p.at(s.Name)
			defer p.done.Add(f.Bytes)
			path := filepath.Join(dir, f.Name)
			if err := checkFile(ctx, path, f); err == nil {
				return nil
			}
			p.moved.Add(f.Bytes)
			return read(ctx, t, f, func(content io.Reader) error { return writeFile(ctx, path, content, f.Bytes) })
		})
	}
	return group.Wait()
}

// Check reads every content of a backup and compares its hash.
func Check(ctx context.Context, t Target, m *Manifest, p *Progress) error {
	p.begin(m.Bytes())
	defer p.end()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for _, s := range m.Stores {
		for _, f := range s.Files {
			group.Go(func() error {
				p.at(s.Name)
				defer p.done.Add(f.Bytes)
				err := read(ctx, t, f, func(content io.Reader) error {
					_, err := io.Copy(io.Discard, cancelable{ctx, content})
					return err
				})
				if err != nil {
					return fmt.Errorf("check %s: %w", s.Name, err)
				}
				return nil
			})
		}
	}
	return group.Wait()
}

// read passes the content of a file to use, which must read to the end: a wrong size or
// hash is an error there instead of io.EOF.
func read(ctx context.Context, t Target, f File, use func(io.Reader) error) error {
	content, err := t.Get(ctx, object(f.SHA256))
	if err == nil {
		err = use(&checked{from: content, file: f, left: f.Bytes})
		err = errors.Join(err, content.Close())
	}
	if errors.Is(err, ErrNoBackup) { // the backup is there: its manifest names the content
		err = fmt.Errorf("%w: %s is missing", ErrDamaged, object(f.SHA256))
	}
	if err != nil {
		return fmt.Errorf("file %s: %w", f.Name, err)
	}
	return nil
}

// removeOthers removes what does not belong to a store, such as parts of files.
func removeOthers(dir string, files []File) error {
	wanted := make(map[string]bool)
	for _, f := range files {
		wanted[f.Name] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !wanted[entry.Name()] {
			if err := os.RemoveAll(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkFile returns an error unless a file exists and has the right hash.
func checkFile(ctx context.Context, path string, f File) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(io.Discard, &checked{from: cancelable{ctx, file}, file: f, left: f.Bytes})
	return err
}
