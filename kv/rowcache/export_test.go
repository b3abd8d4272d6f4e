package rowcache

// Queued returns the bytes that wait to be written to disk.
func (s *Store) Queued() int64 { return s.disk.queued.Load() }
