package gateway

// Stats describes the current state of a Handler, and its refusals so far.
type Stats struct {
	Sockets      int // open WebSockets
	LightRunning int // calls in slots of light ones, also heavy calls that wait for nodes there
	LightWaiting int
	HeavyRunning int
	HeavyWaiting int
	HeldBytes    int64 // memory of bodies and answers, except small ones
	Addresses    int   // with counted failures
	Refused      map[Reason]uint64
}

// Stats returns the current statistics.
func (h *Handler) Stats() Stats {
	s := h.current.Load()
	stats := Stats{
		Sockets:      h.sockets.count(),
		LightRunning: s.light.Running(),
		LightWaiting: s.light.Waiting(),
		HeavyRunning: s.heavy.Running(),
		HeavyWaiting: s.heavy.Waiting(),
		HeldBytes:    s.memory.Held(),
		Addresses:    h.addresses.Len(),
		Refused:      make(map[Reason]uint64, reasons),
	}
	for i := range h.refusals {
		stats.Refused[Reason(i)] = h.refusals[i].Load()
	}
	return stats
}
