package command

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ashlar/family"
)

// importProgress shows the progress of an import. It implements [family.Show].
type importProgress struct {
	*progress
	count func() family.Progress
	began time.Time

	mu   sync.Mutex
	file string                     // guarded by mu
	read func() (read, total int64) // guarded by mu
	from time.Time                  // guarded by mu: when the file was opened
}

func newImportProgress(out *os.File, count func() family.Progress) *importProgress {
	p := &importProgress{count: count, began: time.Now()}
	p.progress = newProgress(out, "importing", p.status)
	return p
}

// Begin implements [family.Show].
func (p *importProgress) Begin(path string, read func() (read, total int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.file, p.read, p.from = filepath.Base(path), read, time.Now()
}

// Done implements [family.Show].
func (p *importProgress) Done(path string) {
	p.note("file imported", "file", filepath.Base(path), "kept", p.count().Kept)
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
	brief := fmt.Sprintf("block %d", done.Head)
	fields := []any{"block", done.Head, "blocks", done.Blocks, "skipped", done.Skipped}
	for _, rate := range done.Rates {
		brief += fmt.Sprintf("  %.0f %s", rate.Count/seconds, rate.Unit)
		fields = append(fields, rate.Unit, int(rate.Count/seconds))
	}
	return status{part: p.file, kind: "file", since: p.from, share: share, brief: brief, fields: fields}, true
}
