package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ashlar/internal/node"

	"golang.org/x/sync/errgroup"
)

// A soak runs the honest accounts and every hostile way at once, each with an account of its
// own, while the demo's networks produce blocks and new data directories are made beside it.
// It samples what the service holds. The first third of the time is for warming up: caches
// and pools fill. The second and the last third are compared.
const (
	samples = 300 // in a soak
	// allowedGrowth is by how much the last third may exceed the second, as a share, and
	// allowedMore what it may exceed it by in any case: bytes, goroutines or files.
	allowedGrowth = 0.10
	moreBytes     = 32 << 20
	moreCounted   = 200
	// pause ends a soak: without clients, goroutines and files are as few as before.
	pause = 20 * time.Second
)

// held is what a service holds at some time.
type held struct{ bytes, goroutines, files float64 }

// runSoak runs a soak. The error says what has grown.
func runSoak(ctx context.Context, length time.Duration) error {
	demo, err := newDemo(ctx)
	if err != nil {
		return err
	}
	defer demo.remove()
	operator, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	if err := demo.start(ctx, "--operator", operator, "--interval", "500ms"); err != nil {
		return err
	}
	before, err := sample(ctx, demo.service.PID(), operator)
	if err != nil {
		return err
	}
	load, stop := context.WithTimeout(ctx, length)
	defer stop()
	group, err := startLoad(load, demo)
	if err != nil {
		return err
	}
	group.Go(func() error { return imports(load, demo.ashlar.Bin, demo.dir) })
	taken, err := watch(load, demo.service.PID(), operator, length/samples)
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	time.Sleep(pause)
	after, err := sample(ctx, demo.service.PID(), operator)
	if err != nil {
		return err
	}
	return errors.Join(compare(taken), returned(before, after), demo.service.Stop())
}

// startLoad starts the honest clients and the hostile ones.
func startLoad(ctx context.Context, demo *demo) (*errgroup.Group, error) {
	group, ctx := errgroup.WithContext(ctx)
	honest, err := demo.honest(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range honest {
		group.Go(func() error {
			if o := c.ask(ctx); o.failed > o.asked()/100 {
				return fmt.Errorf("%d of %d honest requests failed", o.failed, o.asked())
			}
			return nil
		})
	}
	for i, w := range ways() {
		keys, err := account(ctx, demo.ashlar, fmt.Sprintf("hostile%d@example.org", i), 2)
		if err != nil {
			return nil, err
		}
		c := newClient(demo.host, keys, honestAccounts+1+i)
		group.Go(func() error {
			for ctx.Err() == nil { // again when the service has closed its connections
				_ = w.run(ctx, c)
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
	}
	return group, nil
}

// imports makes new data directories beside the service, one after the other.
func imports(ctx context.Context, bin, dir string) error {
	for n := 0; ctx.Err() == nil; n++ {
		data := filepath.Join(dir, fmt.Sprint("import", n))
		p, _, err := node.Ashlar{Bin: bin, Data: data}.Demo(ctx)
		if err == nil {
			err = p.Stop()
		}
		if err := errors.Join(err, os.RemoveAll(data)); err != nil && ctx.Err() == nil {
			return fmt.Errorf("import beside the service: %w", err)
		}
	}
	return nil
}

// watch samples what a service holds until ctx is done.
func watch(ctx context.Context, pid int, operator string, every time.Duration) (taken []held, err error) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	logged := time.Now()
	for {
		select {
		case <-ctx.Done():
			return taken, nil
		case <-tick.C:
		}
		h, err := sample(context.WithoutCancel(ctx), pid, operator)
		if err != nil {
			return taken, fmt.Errorf("the service is gone: %w", err)
		}
		taken = append(taken, h)
		if time.Since(logged) > time.Minute {
			logged = time.Now()
			fmt.Println(h)
		}
	}
}

func (h held) String() string {
	return fmt.Sprintf("%s  %.0f MiB, %.0f goroutines, %.0f files", time.Now().Format(time.TimeOnly), h.bytes/(1<<20), h.goroutines, h.files)
}

// sample returns what a service holds now: its resident memory, its goroutines and its open
// files.
func sample(ctx context.Context, pid int, operator string) (h held, err error) {
	var total, pages int64
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err == nil {
		_, err = fmt.Sscan(string(text), &total, &pages)
	}
	if err != nil {
		return h, err
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return h, err
	}
	h.bytes, h.files = float64(pages*int64(os.Getpagesize())), float64(len(files))
	h.goroutines, err = goroutines(ctx, operator)
	return h, err
}

// goroutines reads the number of goroutines from the metrics.
func goroutines(ctx context.Context, operator string) (n float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	c := client{host: operator, http: http.DefaultClient}
	text, err := c.get(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(text, "\ngo_goroutines ")
	if !ok {
		return 0, errors.New("no go_goroutines in the metrics")
	}
	_, err = fmt.Sscan(rest, &n)
	return n, err
}

// compare returns an error if the last third of the samples is higher than the second.
func compare(taken []held) error {
	third := len(taken) / 3
	if third < 10 {
		return fmt.Errorf("%d samples, expected 30 or more: run it for longer", len(taken))
	}
	second, last := taken[third:2*third], taken[len(taken)-third:]
	var grown []error
	for _, c := range []struct {
		what string
		of   func(held) float64
		more float64
	}{
		{"resident bytes", func(h held) float64 { return h.bytes }, moreBytes},
		{"goroutines", func(h held) float64 { return h.goroutines }, moreCounted},
		{"open files", func(h held) float64 { return h.files }, moreCounted},
	} {
		before, after := median(second, c.of), median(last, c.of)
		fmt.Printf("%s: median %.0f in the second third, %.0f in the last\n", c.what, before, after)
		if after > before*(1+allowedGrowth)+c.more {
			grown = append(grown, fmt.Errorf("%s have grown from %.0f to %.0f", c.what, before, after))
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

// returned returns an error if more goroutines or files are left without clients than there
// were before them.
func returned(before, after held) error {
	fmt.Println("before clients:", before)
	fmt.Println("after clients: ", after)
	if after.goroutines > before.goroutines+moreCounted || after.files > before.files+moreCounted {
		return fmt.Errorf("without clients %.0f goroutines and %.0f files are left, before %.0f and %.0f", after.goroutines, after.files, before.goroutines, before.files)
	}
	return nil
}

// freeAddress returns an address on this machine that nothing listens on.
func freeAddress(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
