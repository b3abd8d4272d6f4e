package gateway

import (
	"runtime"
	"strings"
	"sync"
	"testing"

	"ashlar/internal/await"
)

// ids returns the goroutines in which n functions run at the same time, once five workers are
// idle again.
func (w *workers) ids(t *testing.T, n int) map[string]bool {
	var running, done sync.WaitGroup
	var mu sync.Mutex
	all := make(map[string]bool)
	running.Add(n)
	for range n {
		done.Add(1)
		w.run(func() {
			defer done.Done()
			text := make([]byte, 64)
			id, _, _ := strings.Cut(string(text[:runtime.Stack(text, false)]), " [")
			mu.Lock()
			all[id] = true
			mu.Unlock()
			running.Done()
			running.Wait()
		})
	}
	done.Wait()
	await.Until(t, "five idle workers", func() bool { return w.resting() >= 5 }) // as many as the tests start
	return all
}

// resting returns how many workers are idle.
func (w *workers) resting() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.idle)
}

func TestWorkersAreUsedAgain(t *testing.T) {
	var w workers
	defer w.close()
	first := w.ids(t, 5)
	if len(first) != 5 {
		t.Fatalf("%d goroutines", len(first))
	}
	for id := range w.ids(t, 3) {
		if !first[id] {
			t.Errorf("%s is new", id)
		}
	}
	w.trim() // the first trim ends none: all were needed before
	w.ids(t, 3)
	w.trim()
	if n := w.resting(); n != 3 {
		t.Errorf("%d workers after a time in which 3 were needed", n)
	}
	w.trim()
	if n := w.resting(); n != 0 {
		t.Errorf("%d workers after a time in which none was needed", n)
	}
	if again := w.ids(t, 5); len(again) != 5 {
		t.Errorf("%d goroutines", len(again))
	}
}

func TestWorkersClose(t *testing.T) {
	var w workers
	w.ids(t, 5)
	w.trim() // all five are spare
	begun, release, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	w.run(func() {
		close(begun)
		<-release
		close(ended)
	})
	<-begun
	closed := make(chan struct{})
	go func() {
		w.close()
		close(closed)
	}()
	close(release)
	<-closed
	select {
	case <-ended:
	default:
		t.Error("closed while a function was running")
	}
	w.trim()
	done := make(chan struct{})
	w.run(func() { close(done) })
	<-done
}
