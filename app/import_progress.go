package app

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ashlar/ingest"
)

// importProgress shows how far an import is.
type importProgress struct {
	*progress
	importer *ingest.Importer
	began    time.Time

	mu   sync.Mutex
	file string                     // guarded by mu
	read func() (read, total int64) // guarded by mu
	from time.Time                  // guarded by mu: when the file was begun
}

func newImportProgress(out *os.File, importer *ingest.Importer) *importProgress {
	p := &importProgress{importer: importer, began: time.Now()}
	p.progress = newProgress(out, "importing", p.status)
	return p
}

// begin notes that a file is being read.
func (p *importProgress) begin(path string, read func() (read, total int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.file, p.read, p.from = filepath.Base(path), read, time.Now()
}

// done says that a file has been imported, and what is kept now whatever happens.
func (p *importProgress) done(path string) {
	p.note("file imported", "file", filepath.Base(path), "kept", p.importer.Progress().Kept)
}

func (p *importProgress) status() (status, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		return status{}, false
	}
	done := p.importer.Progress()
	seconds := time.Since(p.began).Seconds()
	read, total := p.read()
	share := 1.0
	if total > 0 {
		share = float64(read) / float64(total)
	}
	transactions, gas := float64(done.Transactions)/seconds, float64(done.Gas)/seconds/1e6
	return status{
		part: p.file, kind: "file", since: p.from, share: share,
		brief: fmt.Sprintf("block %d  %.0f tx/s  %.0f Mgas/s", done.Head, transactions, gas),
		fields: []any{
			"block", done.Head, "blocks", done.Blocks, "skipped", done.Skipped, "tx/s", int(transactions), "Mgas/s", int(gas),
		},
	}, true
}
