package command

import (
	"fmt"
	"os"
	"runtime/debug"

	"ashlar/family"
)

// Memory that an import may take.
const (
	DefaultMemory family.Bytes = 1536 << 20
	LeastMemory   family.Bytes = 1 << 30
)

// An import divides its memory into these parts. Any other size than the default adds a share of the
// difference to each, or takes it away:
//
//	default   share
//	832 MiB   3/8     what Go manages, a third of it garbage
//	320 MiB   2/8     among that, the newest state and its tries: family.ImportMemory's State
//	448 MiB   4/8     the store's cache, with its memtables and the filters of tables that are not merged
//	256 MiB   1/8     buffers of compactions, the program itself, and what malloc has not returned
const (
	importHeap  = 832 << 20
	importState = 320 << 20
	importCache = 448 << 20

	// importCollector lets the collector run seldom until the limit of the heap is near.
	importCollector = 400
	// maxImportBuffer is a memtable that one flush handles well.
	maxImportBuffer = 512 << 20
)

// PrepareImport makes the garbage collector of this process as an import needs it that takes
// at most the given memory, unless the environment's GOGC or GOMEMLIMIT say otherwise. It returns
// what the import may do with the memory.
func PrepareImport(memory family.Bytes) family.ImportMemory {
	eighth := int64(memory-DefaultMemory) / 8
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(importCollector)
		if os.Getenv("GOMEMLIMIT") == "" {
			debug.SetMemoryLimit(importHeap + 3*eighth)
		}
	}
	cache := importCache + 4*eighth
	return family.ImportMemory{
		Cache:  cache,
		Buffer: min(cache*2/7, maxImportBuffer), // two are in use at times, and leave the rest to rows
		State:  importState + 2*eighth,
	}
}

// ParseMemory parses the flag of the memory of an import.
func ParseMemory(text string) (family.Bytes, error) {
	memory, err := family.ParseBytes(text)
	if err != nil {
		return 0, family.Usage(fmt.Errorf("--memory: %w", err))
	}
	if memory < LeastMemory {
		return 0, family.Usage(fmt.Errorf("--memory %s is too little (want at least %s)", memory, LeastMemory))
	}
	return memory, nil
}
