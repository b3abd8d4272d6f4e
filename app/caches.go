package app

import "ashlar/family"

// CacheBytes returns how much memory the caches of the served networks take at most: those of their stores, and
// those that the networks have besides.
func (s *Service) CacheBytes() (stores, networks int64) {
	c := s.current.Load()
	for _, n := range s.Networks() {
		entries, err := c.Networks[n.Name].Entries(n.family)
		if err != nil {
			continue // it was opened with other ones
		}
		if cacher, ok := entries.(family.Cacher); ok {
			networks += cacher.CacheBytes()
		}
	}
	return int64(c.Cache), networks
}
