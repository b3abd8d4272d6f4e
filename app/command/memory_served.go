package command

import (
	"log/slog"
	"runtime/debug"

	"ashlar/app"
	"ashlar/app/config"
)

// idleMemory is what a server takes that nobody asks, see docs/performance.md.
const idleMemory = 79 << 20

// servedMemory is what a server may take.
type servedMemory struct {
	rows    int64 // caches of the stores, which Go does not manage
	caches  int64 // of the networks
	answers int64 // bodies and answers
}

// warnOfServed logs what keeps a server from taking the memory that its configuration allows it.
func warnOfServed(s *app.Service, c config.Config) {
	m := servedMemory{answers: int64(c.Limits.Memory)}
	m.rows, m.caches = s.CacheBytes()
	m.warn(slog.Default(), int64(availableMemory()), debug.SetMemoryLimit(-1))
}

// warn logs what keeps the server from taking its memory, see warnOfMemory. available is what the system has, 0 if
// that is not known; heap is the limit of what Go manages.
func (m servedMemory) warn(log *slog.Logger, available, heap int64) {
	if taken := m.most(heap); available > 0 && taken > available {
		log.Warn("the server may take more memory than the machine or its container has, and be killed then: lower cache, networks.NAME.state_cache or limits.memory, or set GOMEMLIMIT; see docs/guides/sizing.md",
			"memory", readableBytes(taken), "available", readableBytes(available),
			"cache", readableBytes(m.rows), "caches_of_networks", readableBytes(m.caches), "limits.memory", readableBytes(m.answers))
	}
	if least := m.caches + idleMemory; heap < least {
		log.Warn("GOMEMLIMIT is less than what the caches of the networks and the server itself may take: the more they hold, the more time goes into collecting garbage. Lower networks.NAME.state_cache, or raise GOMEMLIMIT",
			"limit", readableBytes(heap), "expected", readableBytes(least))
	}
}

// most returns how much memory the server takes at most, except for processes that run clients' scripts. The
// collector lets the heap grow to twice what is in use, unless heap limits it. Bodies and answers count once: their
// buffers are used again.
func (m servedMemory) most(heap int64) int64 {
	used := m.caches + idleMemory + m.answers
	return m.rows + min(used+m.caches, max(used, heap))
}
