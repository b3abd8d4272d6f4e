package execute

// CachedReads returns how many reads of replays are cached, and how many of these are counted.
func (e *Executor) CachedReads() (cached, counted int) {
	e.reads.mu.Lock()
	defer e.reads.mu.Unlock()
	for _, root := range e.reads.states.Keys() {
		reads, _ := e.reads.states.Peek(root)
		cached += reads.length()
	}
	return cached, e.reads.count
}
