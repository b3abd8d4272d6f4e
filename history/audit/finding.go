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

// Finding is an inconsistency. It is an error, so that a check can return it.
type Finding struct {
	Table    string `json:"table"`
	Key      string `json:"key"`   // which row it is, for people
	Block    uint64 `json:"block"` // that the row is of, or as of which it is wrong
	Expected string `json:"expected"`
	Got      string `json:"got"`
}

// Error says everything in one line.
func (f *Finding) Error() string {
	return fmt.Sprintf("%s, block %d, %s: expected %s, got %s", f.Table, f.Block, f.Key, f.Expected, f.Got)
}

// Text is the finding as a command shows it, over several lines.
func (f *Finding) Text() string {
	return fmt.Sprintf("table     %s\nkey       %s\nblock     %d\nexpected  %s\ngot       %s\n", f.Table, f.Key, f.Block, f.Expected, f.Got)
}

// Finding is about the row of a table with this key, as of its own block.
func (f *Family) Finding(t *kv.Table, partition []byte, sort uint64, wanted, got string) *Finding {
	return &Finding{
		Table: t.Name, Key: f.DescribeKey(t, partition, sort), Block: t.BlockOf(sort),
		Expected: wanted, Got: got,
	}
}

// Unreadable is what an error of reading a row means: a row that is not there or
// that does not decode, a store that is damaged, or, where the context has ended,
// nothing of the kind.
func (f *Family) Unreadable(ctx context.Context, t *kv.Table, partition []byte, sort uint64, err error) error {
	const row = "a row"
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, kv.ErrNotFound) || errors.Is(err, rows.ErrNotFound):
		return f.Finding(t, partition, sort, row, "none")
	case errors.Is(err, rows.ErrCorrupt):
		return f.Finding(t, partition, sort, "a row that decodes", strings.TrimPrefix(err.Error(), rows.ErrCorrupt.Error()+": "))
	default:
		return f.Finding(t, partition, sort, "a row that can be read", damage(err))
	}
}

// damage puts an error of the engine in words. Its details are in further lines.
func damage(err error) string {
	what, _, _ := strings.Cut(err.Error(), "\n")
	return "the store's files are damaged, or cannot be read: " + what
}

// sameValue returns a finding unless a row has the value that it must have.
func (f *Family) sameValue(t *kv.Table, wanted kv.Row, got []byte) error {
	if bytes.Equal(wanted.Value, got) {
		return nil
	}
	at := 0
	for at < len(got) && at < len(wanted.Value) && got[at] == wanted.Value[at] {
		at++
	}
	return f.Finding(t, wanted.Partition, wanted.Sort, DescribeValue(wanted.Value, at), DescribeValue(got, at))
}

// shownBytes of a value are shown, from where it differs from another.
const shownBytes = 32

// DescribeValue names a value for people, from a byte on.
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

// LowestFinding keeps, of findings that come in any order, the one that is about
// the lowest block, so that two runs find the same.
type LowestFinding struct {
	mu    sync.Mutex
	found *Finding // guarded by mu
}

// Take keeps a finding, and returns every other error.
func (l *LowestFinding) Take(err error) error {
	f := (*Finding)(nil)
	if !errors.As(err, &f) {
		return err
	}
	l.Keep(f)
	return nil
}

// Keep keeps a finding.
func (l *LowestFinding) Keep(f *Finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == nil || cmp.Or(cmp.Compare(f.Block, l.found.Block), cmp.Compare(f.Key, l.found.Key)) < 0 {
		l.found = f
	}
}

// Err is the finding that was kept; nil where there is none.
func (l *LowestFinding) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == nil {
		return nil // and not a *Finding that is nil
	}
	return l.found
}

// Unopened is the finding that a store is there and cannot be opened.
func Unopened(dir string, err error) *Finding {
	return &Finding{Table: "none", Key: dir, Expected: "a store that opens", Got: damage(err)}
}
