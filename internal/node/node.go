// Package node runs Ashlar and geth as child processes, as their users run them: with a binary, a
// data directory and an endpoint. Tests and benchmarks use it.
//
// All processes listen on the loopback interface only and have no peers. A process ends when Stop
// or Kill returns, or when the context with which it was started is done.
package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ashlar/internal/usage"
)

// Usage is the resource usage of a process that has ended.
type Usage struct {
	Wall   time.Duration
	CPU    time.Duration // user and system time of all threads
	MaxRSS int64         // bytes; 0 where the system does not say
}

// Process is a running child process.
type Process struct {
	cmd     *exec.Cmd
	output  *tail
	started time.Time
	done    chan struct{} // closed when the process has ended; err and usage are set before
	err     error
	usage   Usage
}

// start starts a command. The process is killed when ctx is done.
func start(ctx context.Context, bin string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.CommandContext(ctx, bin, args...), output: &tail{max: 8 << 10}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	p.started = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.await()
	return p, nil
}

func (p *Process) await() {
	err := p.cmd.Wait()
	p.usage.Wall = time.Since(p.started)
	if state := p.cmd.ProcessState; state != nil {
		p.usage.CPU = state.UserTime() + state.SystemTime()
		p.usage.MaxRSS = usage.PeakMemory(state)
	}
	if err != nil {
		p.err = fmt.Errorf("%s %s: %w, its last words:\n%s", p.cmd.Path, p.cmd.Args[1], err, p.output)
	}
	close(p.done)
}

// PID returns the process ID.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// ResidentBytes returns the resident memory of the process. It works on Linux only.
func (p *Process) ResidentBytes() (int64, error) { return PID(p.PID()).ResidentBytes() }

// CPU returns the processor time that the process has used so far. It works on Linux only.
func (p *Process) CPU() (time.Duration, error) { return PID(p.PID()).CPU() }

// PID is the ID of a process that anybody may have started.
type PID int

// ResidentBytes returns the resident memory of the process. It works on Linux only.
func (id PID) ResidentBytes() (int64, error) {
	path := fmt.Sprintf("/proc/%d/statm", id)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var total, resident int64 // pages
	if _, err := fmt.Sscan(string(text), &total, &resident); err != nil {
		return 0, fmt.Errorf("unexpected contents %q of %s (want two numbers or more): %w", text, path, err)
	}
	return resident * int64(os.Getpagesize()), nil
}

// clockTicks is how many ticks a second has in Linux's /proc, on any machine.
const clockTicks = 100

// CPU returns the processor time that the process has used so far. It works on Linux only.
func (id PID) CPU() (time.Duration, error) {
	path := fmt.Sprintf("/proc/%d/stat", id)
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	// The second field is the program's name in parentheses, which may contain anything.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	const user, system = 11, 12 // fields 14 and 15 of the line
	if len(fields) <= system {
		return 0, fmt.Errorf("unexpected contents %q of %s (want at least 15 fields)", text, path)
	}
	var ticks [2]int64
	for i, field := range [][]byte{fields[user], fields[system]} {
		if _, err := fmt.Sscan(string(field), &ticks[i]); err != nil {
			return 0, fmt.Errorf("%s: %w", path, err)
		}
	}
	return time.Duration(ticks[0]+ticks[1]) * (time.Second / clockTicks), nil
}

// Done returns a channel that is closed when the process has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits until the process has ended. Unless the exit code was 0, it returns an error with
// the end of the output.
func (p *Process) Wait() (Usage, error) {
	<-p.done
	return p.usage, p.err
}

// ExitCode waits until the process has ended and returns the exit code, -1 after a signal.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Output returns the end of the output so far.
func (p *Process) Output() string { return p.output.String() }

// Kill sends SIGKILL and waits until the process has ended.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // fails if the process has ended already
	<-p.done
}

// Stop sends SIGINT, at which Ashlar does not wait for load balancers, and returns how the
// process ended. After a minute it kills the process and returns an error.
func (p *Process) Stop() error { return p.end(syscall.SIGINT) }

// Drain sends SIGTERM, after which Ashlar still answers for its lame_duck. Otherwise it is
// like Stop.
func (p *Process) Drain() error { return p.end(syscall.SIGTERM) }

func (p *Process) end(signal syscall.Signal) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	select {
	case <-p.done:
		return p.err
	case <-time.After(time.Minute):
		p.Kill()
		return fmt.Errorf("%s did not end within a minute of %s", p.cmd.Path, signal)
	}
}

// readyTime is the time for a process to answer. It is far longer than a start takes on a busy machine.
const readyTime = 5 * time.Minute

// awaitReady returns when the endpoint answers eth_chainId, if only that it has no such method, or
// with an error if the process ends or does not answer in time.
func (p *Process) awaitReady(ctx context.Context, c *Client) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	for {
		var id string
		err := c.Call(ctx, &id, "eth_chainId")
		var refused *Error
		if err == nil || errors.As(err, &refused) && refused.Code == methodNotFound {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("ended before it answered: %w", errors.Join(p.err, errors.New(p.Output())))
		case <-ctx.Done():
			return fmt.Errorf("never answered: %w (last: %w), its last words:\n%s", ctx.Err(), err, p.Output())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// methodNotFound is JSON-RPC's code for an unknown method.
const methodNotFound = -32601

// FreeAddress returns a loopback address that was free a moment ago. The port is below those
// that the system gives to other programs' listeners and connections, which could take it
// before it is used. Processes begin at different ports.
func FreeAddress() (address string, err error) {
	for range 1000 {
		n := uint32(os.Getpid())*64 + addresses.Add(1)
		address = fmt.Sprintf("127.0.0.1:%d", 10_000+n%20_000)
		var l net.Listener
		if l, err = net.Listen("tcp", address); err == nil {
			return address, l.Close()
		}
	}
	return "", err
}

// addresses counts those that FreeAddress has tried.
var addresses atomic.Uint32

// tail keeps the last max bytes written to it.
type tail struct {
	max int

	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf.Write(b)
	if over := t.buf.Len() - t.max; over > 0 {
		t.buf.Next(over)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buf.String()
}

// run runs a command to its end.
func run(ctx context.Context, bin string, args ...string) error {
	p, err := start(ctx, bin, args...)
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}
