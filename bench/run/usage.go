package main

import (
	"context"
	"fmt"
	"time"
)

// driven runs a load and adds the processor time that the server took for it, if this
// program started the server.
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

// rest waits until a server that this program started is nearly idle, for a limited time.
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

// cpu returns the processor time that the server has used; 0 if another program started it.
func (p *peer) cpu() (time.Duration, error) {
	if p.process == nil {
		return 0, nil
	}
	used, err := p.process.CPU()
	if err != nil {
		return 0, fmt.Errorf("%s: %w", p.Name, err)
	}
	return used, nil
}

// measureMemory reads the resident memory of a server that this program started.
func (p *peer) measureMemory() (err error) {
	if p.process == nil {
		return nil
	}
	if p.Memory, err = p.process.ResidentBytes(); err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	return nil
}
