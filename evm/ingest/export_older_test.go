package ingest

// SetStartBlocks changes how many blocks before the first one with state are stored.
func SetStartBlocks(n uint64) (reset func()) {
	before := startBlocks
	startBlocks = n
	return func() { startBlocks = before }
}
