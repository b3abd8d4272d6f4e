package worker

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
)

// Reasons why a worker ended by itself.
var (
	ErrMemory = errors.New("memory limit")
	ErrStack  = errors.New("stack limit")
	ErrCrash  = errors.New("the process crashed")
	// ErrConfined means that the worker could not be confined, so it did no work.
	ErrConfined = errors.New("the process cannot be confined")
)

// Ended means that a worker ended by itself in the middle of its work.
type Ended struct {
	Reason error  // ErrMemory, ErrStack, ErrCrash or ErrConfined
	Detail string // the exit status and the first line of what the worker said, for logs
}

func (e *Ended) Error() string { return fmt.Sprintf("worker ended: %v (%s)", e.Reason, e.Detail) }
func (e *Ended) Unwrap() error { return e.Reason }

// process is a running worker. It belongs to one Do call at a time, or to the idle ones.
type process struct {
	command *exec.Cmd
	io.Writer
	io.Reader
	err said
}

// environment is what a worker finds in its environment: nothing of the server's, no
// dump of goroutines if it crashes, and no time zone file to read.
var environment = []string{"GOTRACEBACK=none", "TZ=UTC", "GOMAXPROCS=2"}

func start(command []string) (*process, error) {
	w := &process{command: exec.Command(command[0], command[1:]...)}
	w.command.Env = environment
	w.command.Stderr = &w.err
	in, err := w.command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	out, err := w.command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	if err := w.command.Start(); err != nil {
		return nil, fmt.Errorf("start worker: %w", err)
	}
	w.Writer, w.Reader = in, out
	return w, nil
}

// kill ends the process at once. Reads and writes of its pipes fail from then on.
func (w *process) kill() {
	_ = w.command.Process.Kill() // fails only if the process has ended
}

// end kills the process and waits until it is gone. It may be called again.
func (w *process) end() {
	w.kill()
	_ = w.command.Wait() // always reports the kill, or that it was waited for
}

// failed ends the process after the error err of its work, and returns why the worker
// ended if it did so by itself. Its output is closed then.
func (w *process) failed(err error) error {
	w.end()
	if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.EPIPE) {
		return err
	}
	text := w.err.text()
	first, _, _ := strings.Cut(text, "\n")
	return &Ended{Reason: reason(text), Detail: fmt.Sprintf("%v: %s", w.command.ProcessState, first)}
}

// reason tells from a worker's last words why it ended.
func reason(said string) error {
	first, _, _ := strings.Cut(said, "\n")
	switch {
	case strings.Contains(first, confineFailed):
		return ErrConfined
	case strings.Contains(said, "stack overflow"), strings.Contains(said, "stack exceeds"):
		return ErrStack
	case strings.Contains(said, "memory"), strings.Contains(said, "cannot map pages"):
		return ErrMemory
	// The runtime itself faulted, rather than Go code or C. Its collector uses a queue of
	// spans without checking that the system gave it memory (newSpanSPMC in Go 1.26).
	case strings.HasPrefix(said, "SIGSEGV: ") && !strings.Contains(said, "during cgo execution"):
		return ErrMemory
	}
	return ErrCrash
}

// said keeps the beginning of what a worker writes to its standard error.
type said struct{ kept bytes.Buffer }

// maxSaid is how much of it is kept.
const maxSaid = 4 << 10

// Write implements io.Writer.
func (s *said) Write(text []byte) (int, error) {
	s.kept.Write(text[:min(len(text), maxSaid-s.kept.Len())])
	return len(text), nil
}

// text is what was said. The process must have been waited for.
func (s *said) text() string { return s.kept.String() }
