package command

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"ashlar/family"
)

// The parts of an import's memory are less than the whole, and each grows with it.
func TestImportMemory(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }()
	var before family.ImportMemory
	var heapBefore int64
	for _, memory := range []family.Bytes{LeastMemory, DefaultMemory, 4 << 30, 64 << 30} {
		m := PrepareImport(memory)
		heap := debug.SetMemoryLimit(-1)
		if rest := int64(memory) - heap - m.Cache; rest < int64(memory)/8 || rest > int64(memory)/5 {
			t.Errorf("%v: %d bytes are left of a heap of %d and a cache of %d", memory, rest, heap, m.Cache)
		}
		if 3*m.State > 2*heap || 3*m.Buffer > m.Cache {
			t.Errorf("%v: %+v in a heap of %d: want room for garbage, and for rows beside two buffers", memory, m, heap)
		}
		if m.Cache <= before.Cache || m.State <= before.State || m.Buffer < before.Buffer || heap <= heapBefore {
			t.Errorf("%v: %+v in a heap of %d, after %+v in %d", memory, m, heap, before, heapBefore)
		}
		before, heapBefore = m, heap
	}

	for _, set := range []struct{ name, value string }{{"GOMEMLIMIT", "400MiB"}, {"GOGC", "50"}} {
		debug.SetMemoryLimit(math.MaxInt64)
		t.Setenv(set.name, set.value)
		if PrepareImport(DefaultMemory); debug.SetMemoryLimit(-1) != math.MaxInt64 {
			t.Errorf("the limit of the heap is set although the environment has %s", set.name)
		}
		t.Setenv(set.name, "")
	}
}

// A network gets the memory that its import is given, or the default.
func TestMemoryReachesImport(t *testing.T) {
	t.Setenv("GOGC", "100")
	for _, given := range []family.Bytes{0, 4 << 30} {
		enough := errors.New("enough")
		var got family.ImportMemory
		i := Import{Data: t.TempDir(), Network: "net", Memory: given, begin: func(_ context.Context, _ family.Family, p family.Place) (family.Import, error) {
			got = p.Memory
			return nil, enough
		}}
		if err := i.Run(t.Context(), os.Stderr); !errors.Is(err, enough) {
			t.Fatal(err)
		}
		if given == 0 {
			given = DefaultMemory
		}
		if want := PrepareImport(given); got != want {
			t.Errorf("%v: %+v, want %+v", given, got, want)
		}
	}
}

// A snapshot is loaded with the memory that the loading is given, or the default.
func TestMemoryReachesSnapshotLoad(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	percent, limit := debug.SetGCPercent(100), debug.SetMemoryLimit(-1)
	defer func() { debug.SetGCPercent(percent); debug.SetMemoryLimit(limit) }()
	for given, want := range map[family.Bytes]family.Bytes{0: DefaultMemory, LeastMemory: LeastMemory, 4 << 30: 4 << 30} {
		load := SnapshotLoad{Data: t.TempDir(), Network: "net", Memory: given}
		if err := load.Run(t.Context(), os.Stderr); err == nil {
			t.Fatal("there is no snapshot, but one was loaded")
		}
		got := debug.SetMemoryLimit(-1)
		if PrepareImport(want); got != debug.SetMemoryLimit(-1) {
			t.Errorf("%v: a heap of %d, want that of %v, %d", given, got, want, debug.SetMemoryLimit(-1))
		}
	}
}

// An import says what keeps it from taking its memory, and is silent otherwise.
func TestWarnOfMemory(t *testing.T) {
	const most = math.MaxInt64
	for _, test := range []struct {
		name              string
		memory, available family.Bytes
		heap              int64
		says              []string
	}{
		{"enough", DefaultMemory, DefaultMemory, most, nil},
		{"not known", 64 << 30, 0, most, nil},
		{"container", DefaultMemory, 1 << 30, most, []string{"memory=1536MiB", "available=\"1024.0 MiB\"", "less with --memory, at least 1GiB"}},
		{"machine", 64 << 30, 24 << 30, most, []string{"memory=64GiB", "available=\"24.0 GiB\""}},
		{"less than any import takes", LeastMemory, 512 << 20, most, []string{"available=\"512.0 MiB\"", "a small chain needs 1GiB"}},
		{"collector as it should be", 4 << 30, 8 << 30, importHeap + 3*(4<<30-1536<<20)/8, nil},
		{"chosen GOMEMLIMIT", DefaultMemory, 8 << 30, 500 << 20, nil},
		{"small GOMEMLIMIT", DefaultMemory, 8 << 30, 200 << 20, []string{"GOMEMLIMIT", "limit=\"200.0 MiB\"", "without_it=\"832.0 MiB\""}},
	} {
		var out strings.Builder
		warnOfMemory(slog.New(slog.NewTextHandler(&out, nil)), test.memory, test.available, test.heap)
		if (out.Len() == 0) != (test.says == nil) {
			t.Errorf("%s: the log is %q", test.name, out.String())
		}
		for _, says := range test.says {
			if text := strings.ReplaceAll(out.String(), "\\", ""); !strings.Contains(text, says) {
				t.Errorf("%s: %q, want %q in it", test.name, text, says)
			}
		}
	}
}

// Tests run where memory is known, and there is some.
func TestAvailableMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has containers with a limit")
	}
	if got := availableMemory(); got < 64<<20 || got > 1<<50 {
		t.Errorf("%s are available", got)
	}
}

func TestParseMemory(t *testing.T) {
	for text, want := range map[string]family.Bytes{"1GiB": 1 << 30, "1536MiB": DefaultMemory, "34359738368": 32 << 30} {
		if got, err := ParseMemory(text); err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	for text, says := range map[string]string{"1000MiB": "at least 1GiB", "-1": "invalid size", "5GB": "expected a number of bytes", "": "invalid size", "4EiB": "invalid size"} {
		if _, err := ParseMemory(text); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "--memory") {
			t.Errorf("%q: %v, want an error with %q", text, err, says)
		}
	}
}
