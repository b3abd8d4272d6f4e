package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"time"
)

// driven runs a load and adds the processor time that the server took for it, if this
// program started the server.
func (p *peer) driven(run func() (load, error)) (load, error) {
	before := p.cpu()
	l, err := run()
	if p.process != nil {
		l.CPUMicros = float64((p.cpu() - before).Microseconds())
	}
	return l, err
}

// rest waits until a server that this program started is nearly idle, for a limited time.
// It may still be busy with work left by the previous load, and all servers share the machine.
func (p *peer) rest(ctx context.Context) error {
	const look, idle, tries = 200 * time.Millisecond, 40 * time.Millisecond, 50
	for range tries {
		before := p.cpu()
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return ctx.Err()
		}
		if p.cpu()-before <= idle {
			break
		}
	}
	return nil
}

// cpu returns the processor time that the server has used; 0 if unknown.
func (p *peer) cpu() time.Duration {
	if p.process == nil {
		return 0
	}
	used, err := p.process.CPU()
	if err != nil {
		return 0
	}
	return used
}

// measureMemory reads the resident memory of a server that this program started; it stays 0
// if unknown.
func (p *peer) measureMemory() {
	if p.process == nil {
		return
	}
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", p.process.PID()))
	if err != nil {
		return
	}
	defer status.Close()
	for lines := bufio.NewScanner(status); lines.Scan(); {
		var kib int64
		if n, _ := fmt.Sscanf(lines.Text(), "VmRSS: %d kB", &kib); n == 1 {
			p.Memory = kib << 10
		}
	}
}
