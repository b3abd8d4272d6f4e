package pebble

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"ashlar/kv"
)

// isCrowded reports whether an error means that too many files are open, of the process or of the system.
// Clients can bring this about with connections, so it must not end anything for good.
func isCrowded(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// passes reports whether a change that failed had no effect and can be tried again.
func passes(err error) bool { return kv.IsFull(err) || isCrowded(err) }

// nameFull adds [kv.ErrFull] to an error that means it.
func nameFull(err error) error {
	if kv.IsFull(err) && !errors.Is(err, kv.ErrFull) {
		return fmt.Errorf("%w: %w", kv.ErrFull, err)
	}
	return err
}

// guard turns all that can go wrong in the background into two states of the store.
//
//   - Full: a change waits until the disk has space, see disk. Every write returns
//     [kv.ErrFull] until that change is done. The same holds while too many files are open,
//     but the error is the operating system's.
//   - Failed: any other change failed. Every write returns the cause and [kv.ErrFailed],
//     for good: only a new process can write again, after Pebble's recovery on opening.
//
// Everyone who waits is woken in both. Reads go on.
//
// A failure is for good because what is on disk is not known after a change of a log or
// manifest failed, and because Pebble would end the process or try again for ever. See
// disk for how its goroutines are held.
type guard struct {
	log    *slog.Logger
	opened atomic.Bool   // before, whoever opens the store gets the error, and nothing goes on
	failed chan struct{} // closed by the first failure
	once   sync.Once
	cause  error // set before failed is closed

	unreadAt atomic.Int64 // when a read that found too many files open was logged last, in nanoseconds of Unix time

	changing sync.RWMutex // held, for reading, while the disk is changed; see stop

	mu       sync.Mutex
	waiting  int           // guarded by mu; changes that wait for space
	pending  int           // guarded by mu; operations that run left before their end
	full     error         // guarded by mu; why writes are refused; nil if nothing waits or is pending
	last     error         // guarded by mu; the last value of full that was not nil
	filledUp chan struct{} // guarded by mu; closed when full is set
}

func newGuard(log *slog.Logger) *guard {
	return &guard{log: log, failed: make(chan struct{}), filledUp: make(chan struct{})}
}

// err is what made the store fail, or nil.
func (g *guard) err() error {
	select {
	case <-g.failed:
		return g.cause
	default:
		return nil
	}
}

// report logs what happens to an open store.
func (g *guard) report(level slog.Level, message string, args ...any) {
	if g.opened.Load() {
		g.log.Log(context.Background(), level, message, args...)
	}
}

func (g *guard) fail(cause error) {
	g.once.Do(func() {
		cause = nameFull(cause)
		g.cause = fmt.Errorf("%w (%w)", cause, kv.ErrFailed)
		close(g.failed)
		g.report(slog.LevelError, "store failed; reads go on, writes are refused until the process is started again", "error", cause)
	})
}

// change makes a change of the disk.
func (g *guard) change(do func() error) error {
	g.changing.RLock()
	defer g.changing.RUnlock()
	return do()
}

// stop returns when the changes under way are done, and none begins after it: the store is left to
// whoever opens it next. It must be called once.
func (g *guard) stop() { g.changing.Lock() }

// problem returns why writes are refused now, or nil, and a channel that is closed when
// they are refused because the disk is full.
func (g *guard) problem() (filledUp <-chan struct{}, err error) {
	if err := g.err(); err != nil {
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.filledUp, g.full
}

// beginWaiting says that a change waits for space, or until its file can be opened.
func (g *guard) beginWaiting(cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting++
	if g.full == nil {
		g.full = nameFull(cause)
		g.last = g.full
		close(g.filledUp)
		if isCrowded(cause) {
			g.report(slog.LevelError, "too many files are open; writes are refused until some are closed", "error", cause)
		} else {
			g.report(slog.LevelError, "the disk is full; reads go on, writes are refused until there is space", "error", cause)
		}
	}
}

// endWaiting says that such a change is done.
func (g *guard) endWaiting() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.waiting--
	g.settle()
}

// settle ends the state of being full if nothing waits or is pending. g.mu is held.
func (g *guard) settle() {
	if g.full != nil && g.waiting == 0 && g.pending == 0 {
		if isCrowded(g.full) {
			g.report(slog.LevelInfo, "files can be opened again; writes are accepted")
		} else {
			g.report(slog.LevelInfo, "the disk has space again; writes are accepted")
		}
		g.full, g.filledUp = nil, make(chan struct{})
	}
}

// run calls op, which may reach Fatalf or wait for a flush or for space, on a goroutine
// of its own. It returns op's error, or why writes are refused as soon as they are. In
// that case alone op may still be waiting within Pebble when run returns: after
// [kv.ErrFull] it goes on once there is space. Until it is done, nothing else is run, so
// operations keep their order.
func (g *guard) run(op func() error) error {
	filledUp, err := g.problem()
	if err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() {
		err := errors.New("stopped by a failure")
		defer func() {
			if p := recover(); p != nil { // Pebble's way to report a broken log
				err = fmt.Errorf("%v", p)
				g.fail(err)
			}
			done <- err
		}()
		err = op()
	}()
	select {
	case err := <-done:
		if failure := g.err(); failure != nil {
			return failure
		}
		return err
	case <-g.failed:
		return g.cause
	case <-filledUp:
		return g.leave(done)
	}
}

// leave leaves an operation that waits for space, and returns why.
func (g *guard) leave(done <-chan error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.full == nil { // it has ended meanwhile
		g.full, g.filledUp = g.last, closed()
	}
	full := g.full
	g.pending++
	go func() {
		select {
		case <-done:
		case <-g.failed:
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		g.pending--
		g.settle()
	}()
	return full
}

func closed() chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// unreadPause is the least time between two log lines that say that reads find too many files open.
const unreadPause = 10 * time.Second

// unread takes the error of a read. A read that finds too many files open can be repeated when there are
// fewer, so its error is [kv.ErrUnavailable] besides. Callers may not log that, so it is logged here.
func (g *guard) unread(err error) error {
	if !isCrowded(err) {
		return err
	}
	now, last := time.Now().UnixNano(), g.unreadAt.Load()
	if now-last >= int64(unreadPause) && g.unreadAt.CompareAndSwap(last, now) {
		g.report(slog.LevelError, "too many files are open; reads fail until some are closed", "error", err)
	}
	return fmt.Errorf("%w: %w", kv.ErrUnavailable, err)
}

// background takes an error of a flush, a compaction or another background job.
// Pebble calls it on that job's goroutine and begins the job again. It does so in vain while the
// job's tables cannot be opened, so it is slowed down.
func (g *guard) background(err error) {
	if isCrowded(err) {
		time.Sleep(spaceRetry)
		return
	}
	g.fail(err)
	runtime.Goexit()
}

// Infof implements Pebble's Logger.
func (g *guard) Infof(format string, args ...any) {
	if g.log.Enabled(context.Background(), slog.LevelDebug) {
		g.log.Debug(fmt.Sprintf(format, args...))
	}
}

// Errorf implements Pebble's Logger.
func (g *guard) Errorf(format string, args ...any) {
	g.log.Warn(fmt.Sprintf(format, args...))
}

// Fatalf implements Pebble's Logger. It does not return; its goroutine ends.
func (g *guard) Fatalf(format string, args ...any) {
	g.fail(fmt.Errorf(format, args...))
	runtime.Goexit()
}
