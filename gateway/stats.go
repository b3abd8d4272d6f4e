package gateway

// Stats is what a Handler does now, and how often it has refused something.
type Stats struct {
	Sockets      int // open WebSockets
	LightRunning int // calls of cheap methods
	LightWaiting int
	HeavyRunning int
	HeavyWaiting int
	HeldBytes    int64 // of bodies and answers, small ones not counted
	Addresses    int   // whose failures are remembered
	Refused      map[Reason]uint64
}

// Stats says what the handler does now.
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
