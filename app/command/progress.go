package command

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	barEvery  = 200 * time.Millisecond // on a terminal
	lineEvery = 10 * time.Second       // elsewhere
	barWidth  = 24
	clearLine = "\r\x1b[K"
)

// status is the progress of a long task.
type status struct {
	part   string // the current file or table
	kind   string // kind of part
	since  time.Time
	share  float64 // of the part
	brief  string  // additional text after the bar
	fields []any   // additional fields of the log line
}

// progress shows the progress of a task: a bar on a terminal, otherwise periodic log lines.
type progress struct {
	out      *os.File
	terminal bool
	task     string // used in log lines
	now      func() (status, bool)
	started  time.Time
	ended    time.Duration

	mu      sync.Mutex // held while writing
	stop    context.CancelFunc
	stopped chan struct{}
}

// newProgress starts to show the status that now returns, while it returns true.
func newProgress(out *os.File, task string, now func() (status, bool)) *progress {
	ctx, stop := context.WithCancel(context.Background())
	p := &progress{
		out: out, terminal: term.IsTerminal(int(out.Fd())), task: task, now: now, started: time.Now(),
		stop: stop, stopped: make(chan struct{}),
	}
	go p.run(ctx)
	return p
}

// note logs a line without garbling the bar.
func (p *progress) note(message string, fields ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.terminal {
		fmt.Fprint(p.out, clearLine)
	}
	slog.Info(message, fields...)
}

// end stops showing progress.
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
			if s, ok := p.now(); ok {
				p.show(s)
			}
		case <-ctx.Done():
			if p.terminal {
				fmt.Fprint(p.out, clearLine)
			}
			return
		}
	}
}

func (p *progress) show(s status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := "?"
	if s.share > 0.001 {
		left = time.Duration(float64(time.Since(s.since)) * (1 - s.share) / s.share).Round(time.Second).String()
	}
	if !p.terminal {
		fields := append([]any{s.kind, s.part, "done", fmt.Sprintf("%.0f%%", 100*s.share)}, s.fields...)
		slog.Info(p.task, append(fields, "left", left)...)
		return
	}
	full := int(s.share * barWidth)
	fmt.Fprintf(p.out, clearLine+"%s [%s%s] %3.0f%%  %s  %s left", s.part,
		strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), 100*s.share, s.brief, left)
}

// readableBytes formats a number of bytes with a unit.
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
