package backup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Record says how the backups to one target went. It is a file in the data directory, so a server has
// metrics of what another process does, also after a restart. docs/format.md draws it.
type Record struct {
	Target string             `json:"target"`
	Stores map[string]Outcome `json:"stores"` // by Store.Name
}

// Outcome says how the backups of one store went.
type Outcome struct {
	Made     time.Time `json:"made"`     // when the last good one was complete; zero if there was none
	Bytes    int64     `json:"bytes"`    // of the store in it
	Seconds  float64   `json:"seconds"`  // it took, with all stores that it has
	Good     int       `json:"good"`     // how many were good
	Failures int       `json:"failures"` // since the last good one
}

const recordPrefix = "backup-"

// RecordOutcome adds a backup of the named stores to the record of its target. made is nil if the target
// does not have it, and failed is whether anything went wrong with the stores that it does not lack, such as the removal of
// older ones. data is the data directory.
func RecordOutcome(data string, t Target, stores []string, made *Made, failed bool) error {
	path, target, err := recordOf(data, t)
	if err != nil {
		return err
	}
	r, err := readRecord(path)
	if err != nil || r.Stores == nil {
		r = Record{Target: target, Stores: make(map[string]Outcome)} // the first one, or one that cannot be read
	}
	for _, name := range stores {
		o := r.Stores[name]
		lacked := made == nil || slices.Contains(made.Lacks, name)
		if !lacked {
			o = Outcome{
				Made: time.Now().UTC().Truncate(time.Second), Good: o.Good + 1,
				Bytes: made.Stores[name], Seconds: made.Took.Seconds(),
			}
		}
		if failed || lacked {
			o.Failures++
		}
		r.Stores[name] = o
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := writeFile(context.Background(), path, bytes.NewReader(text), int64(len(text))); err != nil {
		return err
	}
	return os.Chmod(path, 0o644) // the server may run as another user
}

// recordOf returns the file with the record of a target, and the name that the target has there.
func recordOf(data string, t Target) (path, target string, err error) {
	if target, err = recordedName(t); err != nil {
		return "", "", err
	}
	sum := sha256.Sum256([]byte(target))
	return filepath.Join(data, fmt.Sprintf("%s%x%s", recordPrefix, sum[:8], suffix)), target, nil
}

// recordedName returns the name of a target, whichever directory it was named in.
func recordedName(t Target) (string, error) {
	if folder, ok := Folder(t); ok {
		return filepath.Abs(folder)
	}
	return t.String(), nil
}

// Records returns the records of all targets. The error says which cannot be read; the others are returned
// all the same.
func Records(data string) (all []Record, err error) {
	entries, err := os.ReadDir(data)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if name := entry.Name(); !strings.HasPrefix(name, recordPrefix) || filepath.Ext(name) != suffix {
			continue
		}
		r, unread := readRecord(filepath.Join(data, entry.Name()))
		if unread != nil {
			err = errors.Join(err, fmt.Errorf("record of backups: %w", unread))
			continue
		}
		all = append(all, r)
	}
	return all, err
}

func readRecord(path string) (r Record, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}
