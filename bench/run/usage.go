package main

import (
	"context"
	"fmt"
	"time"

	"ashlar/internal/node"
)

// driven runs a load and adds the processor time that the server took for it, if its process is
// known.
func (p *peer) driven(run func() (load, error)) (load, error) {
	before, err := p.cpu()
	if err != nil {
		return load{}, err
	}
	l, err := run()
	if err != nil {
		return l, err
	}
	after, err := p.cpu()
	l.CPUMicros = float64((after - before).Microseconds())
	return l, err
}

// rest waits until a server is nearly idle, for a limited time, if its process is known.
// It may still be busy with work left by the previous load, and all servers share the machine.
func (p *peer) rest(ctx context.Context) error {
	const look, idle, tries = 200 * time.Millisecond, 40 * time.Millisecond, 50
	before, err := p.cpu()
	for range tries {
		if err != nil {
			return err
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return ctx.Err()
		}
		var now time.Duration
		if now, err = p.cpu(); err == nil && now-before <= idle {
			return nil
		}
		before = now
	}
	return err
}

// id returns the ID of the server's process; 0: unknown.
func (p *peer) id() node.PID {
	if p.process != nil {
		return node.PID(p.process.PID())
	}
	return p.pid
}

// cpu returns the processor time that the server has used; 0 if its process is unknown.
func (p *peer) cpu() (time.Duration, error) {
	id := p.id()
	if id == 0 {
		return 0, nil
	}
	used, err := id.CPU()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.Name, err)
	}
	return used, nil
}

// measureMemory reads the resident memory of a server whose process is known.
func (p *peer) measureMemory() (err error) {
	id := p.id()
	if id == 0 {
		return nil
	}
	if p.Memory, err = id.ResidentBytes(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}
