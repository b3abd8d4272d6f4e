package backup

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Target stores objects under slash-separated names.
type Target interface {
	// List calls found with the name and size of every object below a folder, in any order.
	// The folder ends with a slash.
	List(ctx context.Context, folder string, found func(name string, bytes int64)) error
	// Put stores an object of the given size, durably, and whole or not at all.
	Put(ctx context.Context, name string, content io.Reader, bytes int64) error
	// Get opens an object. The error is an ErrNoBackup if it does not exist; it may come
	// from the first read.
	Get(ctx context.Context, name string) (io.ReadCloser, error)
	// Remove removes an object.
	Remove(ctx context.Context, name string) error
	// String returns the place as the user named it.
	String() string
}

// OpenTarget opens a folder, which is created by the first backup, or s3://BUCKET/PREFIX.
func OpenTarget(place string) (Target, error) {
	scheme, rest, ok := strings.Cut(place, "://")
	switch {
	case ok && scheme == "s3":
		return openBucket(place, rest)
	case !ok && !strings.HasPrefix(place, "s3:"): // which lacks a slash
		return folder(place), nil
	}
	return nil, fmt.Errorf("unknown kind of target %q (want a folder, or s3://BUCKET/PREFIX)", place)
}

// Folder returns the folder of a target on a filesystem.
func Folder(t Target) (path string, ok bool) {
	f, ok := t.(folder)
	return string(f), ok
}
