package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// period is how often a reader's use of processors is compared with its share.
const period = 10 * time.Millisecond

// govern lets a process use a share of a processor until ctx is done: when it has used more
// in the last periods, it is stopped for some. That needs no rights and works everywhere
// alike, but answers wait for up to a few periods.
func govern(ctx context.Context, pid int, share float64) error {
	tick := time.NewTicker(period)
	defer tick.Stop()
	before, err := processorTime(pid)
	if err != nil {
		return err
	}
	stopped, budget, last := false, time.Duration(0), time.Now()
	defer func() { _ = syscall.Kill(pid, syscall.SIGCONT) }() // it may have ended
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		used, err := processorTime(pid)
		if err != nil {
			return err
		}
		now := time.Now()
		budget += time.Duration(share*float64(now.Sub(last))) - (used - before)
		budget = min(budget, 2*period) // what was not used is lost
		before, last = used, now
		switch {
		case budget < 0 && !stopped:
			err, stopped = syscall.Kill(pid, syscall.SIGSTOP), true
		case budget >= 0 && stopped:
			err, stopped = syscall.Kill(pid, syscall.SIGCONT), false
		}
		if err != nil {
			return err
		}
	}
}

// processorTime returns what all threads of a process have used.
func processorTime(pid int) (sum time.Duration, err error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	for _, path := range threads {
		text, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			return 0, err
		}
		var ns int64
		if _, err := fmt.Sscan(strings.Fields(string(text))[0], &ns); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}
