package command

import (
	"fmt"
	"log/slog"
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"

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

// warnOfMemory logs what keeps an import from taking the given memory. The kernel ends a process that takes more
// than there is without a message, and a collector that always runs looks like a slow import. available is
// what the system has, 0 if that is not known; heap is the limit of what Go manages.
func warnOfMemory(log *slog.Logger, memory, available family.Bytes, heap int64) {
	if available > 0 && memory > available {
		advice := fmt.Sprintf("give it less with --memory, at least %s", LeastMemory)
		if available < LeastMemory {
			advice = fmt.Sprintf("an import of more than a small chain needs %s", LeastMemory)
		}
		log.Warn("the import may take more memory than the machine or its container has, and be killed then: "+advice,
			"memory", memory, "available", readableBytes(int64(available)))
	}
	eighth := int64(memory-DefaultMemory) / 8
	if heap < importState+2*eighth {
		log.Warn("GOMEMLIMIT is less than what the import keeps of the state: the larger the state, the more time goes into collecting garbage",
			"limit", readableBytes(heap), "without_it", readableBytes(importHeap+3*eighth))
	}
}

// availableMemory returns the memory of the machine, or of the container that this process is in if that is less;
// 0 if neither is known.
func availableMemory() family.Bytes {
	least := uint64(math.MaxInt64)
	for _, limit := range []memlimit.Provider{memlimit.FromSystem, memlimit.FromCgroup} {
		if bytes, err := limit(); err == nil { // an error means that there is no limit, or that it is not known
			least = min(least, bytes)
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return family.Bytes(least)
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
