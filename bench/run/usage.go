package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"time"
)

// clockTicks is how many ticks a second has in Linux's /proc, on any machine.
const clockTicks = 100

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
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.process.PID()))
	if err != nil {
		return 0
	}
	// The second field is the program's name in parentheses, which may contain anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system = 11, 12 // fields 14 and 15 of the line
	var ticks [2]int64
	if len(fields) <= system {
		return 0
	}
	for i, field := range [][]byte{fields[user], fields[system]} {
		if _, err := fmt.Sscan(string(field), &ticks[i]); err != nil {
			return 0
		}
	}
	return time.Duration(ticks[0]+ticks[1]) * (time.Second / clockTicks)
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
