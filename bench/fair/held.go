package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"ashlar/internal/node"
)

// held is what a service holds at rest.
type held struct {
	live       float64 // bytes of the Go heap after a garbage collection
	native     float64 // resident bytes outside of Go's: caches of the store, C code, the program
	resident   float64 // bytes; Go returns those that are free over minutes
	goroutines float64
	files      float64
}

// allowedGrowth is the share by which the median of the last third may exceed that of the
// second; each quantity may grow by a number besides. Memory outside of the heap is a
// difference of two counts of pages: without growth, single samples were between 28 and 93
// MiB.
const allowedGrowth = 0.05

var quantities = []struct {
	name string
	of   func(held) float64
	more float64
}{
	{"bytes of live heap", func(h held) float64 { return h.live }, 6 << 20},
	{"resident bytes outside of the heap", func(h held) float64 { return h.native }, 32 << 20},
	{"goroutines", func(h held) float64 { return h.goroutines }, 20},
	{"open files", func(h held) float64 { return h.files }, 20},
}

func (h held) String() string {
	const mebibyte = 1 << 20
	return fmt.Sprintf("%.1f MiB live, %.1f MiB outside of the heap, %.0f MiB resident, %.0f goroutines, %.0f files",
		h.live/mebibyte, h.native/mebibyte, h.resident/mebibyte, h.goroutines, h.files)
}

// ask returns a page of the operator's listener.
func (s *served) ask(ctx context.Context, path string) (string, error) {
	c := client{host: s.operator, http: &http.Client{Timeout: time.Minute}}
	defer c.http.CloseIdleConnections()
	return c.get(ctx, path)
}

// goroutines returns how many goroutines the service has.
func (s *served) goroutines(ctx context.Context) (float64, error) {
	return node.Metric(ctx, s.operator, "go_goroutines")
}

// sample collects garbage in the service and returns what it holds then.
func (s *served) sample(ctx context.Context) (h held, err error) {
	var text string
	for range 3 { // pools keep what is unused for two collections
		if text, err = s.ask(ctx, "/debug/pprof/heap?debug=1&gc=1"); err != nil {
			return h, err
		}
	}
	numbers := make(map[string]float64)
	for line := range strings.Lines(text) {
		var name string
		var value float64
		if _, err := fmt.Sscanf(line, "# %s = %f", &name, &value); err == nil {
			numbers[name] = value
		}
	}
	if numbers["HeapAlloc"] == 0 {
		return h, errors.New("no HeapAlloc in the profile")
	}
	if h.goroutines, err = s.goroutines(ctx); err != nil {
		return h, err
	}
	resident, err := s.service.ResidentBytes()
	if err != nil {
		return h, err
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.service.PID()))
	h.live, h.resident, h.files = numbers["HeapAlloc"], float64(resident), float64(len(files))
	h.native = h.resident - (numbers["HeapSys"] - numbers["HeapReleased"])
	return h, err
}

// compare returns an error if the last third of the samples is higher than the second.
func compare(taken []held) error {
	third := len(taken) / 3
	if third < 3 {
		return fmt.Errorf("%d samples, expected 9 or more", len(taken))
	}
	second, last := taken[third:2*third], taken[len(taken)-third:]
	var grown []error
	for _, q := range quantities {
		before, after := median(second, q.of), median(last, q.of)
		fmt.Printf("%s: median %.0f in the second third, %.0f in the last\n", q.name, before, after)
		if after > before*(1+allowedGrowth)+q.more {
			grown = append(grown, fmt.Errorf("%s have grown from %.0f to %.0f", q.name, before, after))
		}
	}
	return errors.Join(grown...)
}

func median(of []held, value func(held) float64) float64 {
	var all []float64
	for _, h := range of {
		all = append(all, value(h))
	}
	slices.Sort(all)
	return all[len(all)/2]
}
