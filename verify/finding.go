package verify

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"ashlar/archive"
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

// finding is about the row of a table with this key, as of its own block.
func finding(t *kv.Table, partition []byte, sort uint64, wanted, got string) *Finding {
	return &Finding{
		Table: t.Name, Key: archive.DescribeKey(t, partition, sort), Block: archive.BlockOf(t, sort),
		Expected: wanted, Got: got,
	}
}

// unreadable is what an error of reading a row means: a row that is not there or
// that does not decode, a store that is damaged, or, where the context has ended,
// nothing of the kind.
func unreadable(ctx context.Context, t *kv.Table, partition []byte, sort uint64, err error) error {
	const row = "a row"
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, kv.ErrNotFound) || errors.Is(err, archive.ErrNotFound):
		return finding(t, partition, sort, row, "none")
	case errors.Is(err, archive.ErrCorrupt):
		return finding(t, partition, sort, "a row that decodes", strings.TrimPrefix(err.Error(), archive.ErrCorrupt.Error()+": "))
	default:
		return finding(t, partition, sort, "a row that can be read", damage(err))
	}
}

// damage puts an error of the engine in words. Its details are in further lines.
func damage(err error) string {
	what, _, _ := strings.Cut(err.Error(), "\n")
	return "the store's files are damaged, or cannot be read: " + what
}

// sameValue returns a finding unless a row has the value that it must have.
func sameValue(t *kv.Table, wanted kv.Row, got []byte) error {
	if bytes.Equal(wanted.Value, got) {
		return nil
	}
	at := 0
	for at < len(got) && at < len(wanted.Value) && got[at] == wanted.Value[at] {
		at++
	}
	return finding(t, wanted.Partition, wanted.Sort, describeValue(wanted.Value, at), describeValue(got, at))
}

// shownBytes of a value are shown, from where it differs from another.
const shownBytes = 32

func describeValue(value []byte, at int) string {
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

// lowestFinding keeps, of findings that come in any order, the one that is about
// the lowest block, so that two runs find the same.
type lowestFinding struct {
	mu    sync.Mutex
	found *Finding // guarded by mu
}

// take keeps a finding, and returns every other error.
func (l *lowestFinding) take(err error) error {
	f := (*Finding)(nil)
	if !errors.As(err, &f) {
		return err
	}
	l.keep(f)
	return nil
}

func (l *lowestFinding) keep(f *Finding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == nil || cmp.Or(cmp.Compare(f.Block, l.found.Block), cmp.Compare(f.Key, l.found.Key)) < 0 {
		l.found = f
	}
}

func (l *lowestFinding) err() error {
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

// unpointed is the finding that a pointer is not what it must be.
func unpointed(err error) *Finding {
	f := &Finding{Table: "none", Key: "the pointers format, genesis and settled", Expected: "pointers that can be read"}
	if f.Got = damage(err); errors.Is(err, archive.ErrCorrupt) {
		f.Got = err.Error()
	}
	return f
}
