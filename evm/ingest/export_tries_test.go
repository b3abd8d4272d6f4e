package ingest

import "ashlar/evm/execute/tries"

// KeepNoTries makes an import read all trie nodes again for each block.
func (i *Importer) KeepNoTries() { i.tries = tries.New(0) }
