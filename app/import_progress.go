package app

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// importProgress shows how far an import is.
type importProgress struct {
	*progress
	count func() counted
	began time.Time

	mu   sync.Mutex
	file string                     // guarded by mu
	read func() (read, total int64) // guarded by mu
	from time.Time                  // guarded by mu: when the file was begun
}

// counted is what an import has done so far.
type counted struct {
	head, blocks, skipped uint64
	kept                  uint64 // the last block that stays whatever happens
	rates                 []rate
}

// rate is something of which an import does some each second.
type rate struct {
	unit  string
	count float64
}

func newImportProgress(out *os.File, count func() counted) *importProgress {
	p := &importProgress{count: count, began: time.Now()}
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
	p.note("file imported", "file", filepath.Base(path), "kept", p.count().kept)
}

func (p *importProgress) status() (status, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		return status{}, false
	}
	done := p.count()
	seconds := time.Since(p.began).Seconds()
	read, total := p.read()
	share := 1.0
	if total > 0 {
		share = float64(read) / float64(total)
	}
	brief := fmt.Sprintf("block %d", done.head)
	fields := []any{"block", done.head, "blocks", done.blocks, "skipped", done.skipped}
	for _, rate := range done.rates {
		brief += fmt.Sprintf("  %.0f %s", rate.count/seconds, rate.unit)
		fields = append(fields, rate.unit, int(rate.count/seconds))
	}
	return status{part: p.file, kind: "file", since: p.from, share: share, brief: brief, fields: fields}, true
}
