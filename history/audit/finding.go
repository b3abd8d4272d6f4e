package audit

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"ashlar/history/rows"
	"ashlar/kv"
)

// Finding is an inconsistency. It implements error, so a check can return it.
type Finding struct {
	Table    string `json:"table"`
	Key      string `json:"key"`   // description of the row
	Block    uint64 `json:"block"` // of the row, or as of which the row is wrong
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

// Error returns the finding in one line.
func (f *Finding) Error() string {
	return fmt.Sprintf("%s, block %d, %s: expected %s, got %s", f.Table, f.Block, f.Key, f.Expected, f.Got)
}

// Text returns the finding in several lines, for the command line.
func (f *Finding) Text() string {
	return fmt.Sprintf("table     %s\nkey       %s\nblock     %d\nexpected  %s\ngot       %s\n", f.Table, f.Key, f.Block, f.Expected, f.Got)
}

// Finding returns a finding about a row of a table.
func (a *Archive) Finding(t *kv.Table, partition []byte, sort uint64, wanted, got string) *Finding {
	return &Finding{
		Table: t.Name, Key: a.DescribeKey(t, partition, sort), Block: t.BlockOf(sort),
		Expected: wanted, Got: got,
	}
}

// Unreadable translates an error of reading a row. It returns a finding if the row is
// missing, does not decode or cannot be read, and ctx's error if ctx has ended.
func (a *Archive) Unreadable(ctx context.Context, t *kv.Table, partition []byte, sort uint64, err error) error {
	const row = "a row"
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, kv.ErrNotFound) || errors.Is(err, rows.ErrNotFound):
		return a.Finding(t, partition, sort, row, "none")
	case errors.Is(err, rows.ErrCorrupt):
		return a.Finding(t, partition, sort, "a row that decodes", strings.TrimPrefix(err.Error(), rows.ErrCorrupt.Error()+": "))
	default:
		return a.Finding(t, partition, sort, "a row that can be read", damage(err))
	}
}

// damage describes an error of the storage engine; details are in further lines.
func damage(err error) string {
	what, _, _ := strings.Cut(err.Error(), "\n")
	return "the store's files are damaged or unreadable: " + what
}

// sameValue returns a finding unless got is the value of the row wanted.
func (a *Archive) sameValue(t *kv.Table, wanted kv.Row, got []byte) error {
	if bytes.Equal(wanted.Value, got) {
		return nil
	}
	at := 0
	for at < len(got) && at < len(wanted.Value) && got[at] == wanted.Value[at] {
		at++
	}
	return a.Finding(t, wanted.Partition, wanted.Sort, DescribeValue(wanted.Value, at), DescribeValue(got, at))
}

// shownBytes is how many bytes of a value are shown, from the first difference on.
const shownBytes = 32

// DescribeValue describes a value from byte at on.
func DescribeValue(value []byte, at int) string {
	if len(value) == 0 {
		return "an empty value"
	}
	rest := value[at:]
	switch {
	case len(rest) == 0:
		return fmt.Sprintf("%d bytes and no more", len(value))
	case at == 0 && len(value) <= shownBytes:
		return fmt.Sprintf("the value %#x", value)
	case len(rest) > shownBytes:
		return fmt.Sprintf("%d bytes, from byte %d on %#x…", len(value), at, rest[:shownBytes])
	default:
		return fmt.Sprintf("%d bytes, from byte %d on %#x", len(value), at, rest)
	}
}

// LowestFinding keeps the finding about the lowest block, so that the result of a parallel
// check does not depend on the order. It is safe for concurrent use.
type LowestFinding struct {
	mu    sync.Mutex
	found *Finding // guarded by mu
}

// Take keeps err if it is a finding, and returns any other error.
func (l *LowestFinding) Take(err error) error {
	f := (*Finding)(nil)
	if !errors.As(err, &f) {
		return err
	}
	l.Keep(f)
	return nil
}

// Keep keeps f, unless the finding kept so far is about a lower block.
func (l *LowestFinding) Keep(f *Finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == nil || cmp.Or(cmp.Compare(f.Block, l.found.Block), cmp.Compare(f.Key, l.found.Key)) < 0 {
		l.found = f
	}
}

// Err returns the finding that was kept, or nil.
func (l *LowestFinding) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == nil {
		return nil // not a nil *Finding
	}
	return l.found
}

// UnreadableStore returns the finding that an existing store cannot be opened.
func UnreadableStore(dir string, err error) *Finding {
	return &Finding{Table: "none", Key: dir, Expected: "a store that opens", Got: damage(err)}
}
