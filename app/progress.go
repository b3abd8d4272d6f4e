package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"ashlar/ingest"

	"golang.org/x/term"
)

const (
	barEvery  = 200 * time.Millisecond // on a terminal
	lineEvery = 10 * time.Second       // elsewhere
	barWidth  = 24
	clearLine = "\r\x1b[K"
)

// progress shows how far an import is: a bar on a terminal, a line now and then elsewhere.
type progress struct {
	out      *os.File
	terminal bool
	importer *ingest.Importer
	started  time.Time
	ended    time.Duration

	mu   sync.Mutex
	file string                     // guarded by mu
	read func() (read, total int64) // guarded by mu
	from time.Time                  // guarded by mu: when the file was begun

	stop    context.CancelFunc
	stopped chan struct{}
}

func newProgress(out *os.File, importer *ingest.Importer) *progress {
	ctx, stop := context.WithCancel(context.Background())
	p := &progress{
		out: out, terminal: term.IsTerminal(int(out.Fd())), importer: importer, started: time.Now(),
		stop: stop, stopped: make(chan struct{}),
	}
	go p.run(ctx)
	return p
}

// begin notes that a file is being read.
func (p *progress) begin(path string, read func() (read, total int64)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.file, p.read, p.from = filepath.Base(path), read, time.Now()
}

// done says that a file has been imported, and what is kept now whatever happens.
func (p *progress) done(path string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		fmt.Fprint(p.out, clearLine)
	}
	slog.Info("file imported", "file", filepath.Base(path), "kept", p.importer.Progress().Kept)
}

// end shows nothing more.
func (p *progress) end() {
	p.stop()
	<-p.stopped
	p.ended = time.Since(p.started)
}

func (p *progress) took() time.Duration { return p.ended.Round(time.Millisecond) }

func (p *progress) run(ctx context.Context) {
	defer close(p.stopped)
	every := lineEvery
	if p.terminal {
		every = barEvery
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.show()
		case <-ctx.Done():
			if p.terminal {
				fmt.Fprint(p.out, clearLine)
			}
			return
		}
	}
}

func (p *progress) show() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.read == nil {
		return
	}
	done := p.importer.Progress()
	seconds := time.Since(p.started).Seconds()
	read, total := p.read()
	share := 1.0
	if total > 0 {
		share = float64(read) / float64(total)
	}
	left := "?"
	if share > 0.001 {
		left = time.Duration(float64(time.Since(p.from)) * (1 - share) / share).Round(time.Second).String()
	}
	transactions, gas := float64(done.Transactions)/seconds, float64(done.Gas)/seconds/1e6
	if !p.terminal {
		slog.Info("importing", "file", p.file, "read", fmt.Sprintf("%.0f%%", 100*share), "block", done.Head,
			"blocks", done.Blocks, "skipped", done.Skipped, "tx/s", int(transactions), "Mgas/s", int(gas), "left", left)
		return
	}
	full := int(share * barWidth)
	fmt.Fprintf(p.out, clearLine+"%s [%s%s] %3.0f%%  block %d  %.0f tx/s  %.0f Mgas/s  %s left", p.file,
		strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), 100*share, done.Head, transactions, gas, left)
}

// readableBytes shows a number of bytes as people read it.
func readableBytes(n int64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	default:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
}
