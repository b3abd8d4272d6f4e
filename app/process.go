package app

import (
	"fmt"
	"os"
)

// Process describes a running server.
type Process struct {
	Calls       uint64 `json:"calls"`               // answered since the start
	Failed      uint64 `json:"failed"`              // of them, with an error
	MemoryBytes int64  `json:"memoryBytes"`         // resident; 0 if not known
	FreeBytes   *int64 `json:"freeBytes,omitempty"` // on the fullest of the networks' disks; nil if not known
}

// process returns the state of the process.
func (s *Service) process() *Process {
	p := &Process{Calls: s.metrics.answered.Load(), Failed: s.metrics.failed.Load(), MemoryBytes: residentBytes()}
	for n := range s.asked() {
		if n.store == nil {
			continue
		}
		if free := n.store.Stats().FreeBytes; free != nil && (p.FreeBytes == nil || *free < *p.FreeBytes) {
			p.FreeBytes = free
		}
	}
	return p
}

// residentBytes returns the memory of the process, C code included, or 0 if the operating
// system does not say.
func residentBytes() int64 {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return 0
	}
	return resident * int64(os.Getpagesize())
}
