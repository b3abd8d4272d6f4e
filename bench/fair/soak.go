package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
)

// A soak runs the honest accounts and every hostile way at once, each with an account of its
// own. Meanwhile the service follows a node whose chain is reorganized every few blocks, and
// beside that network another one is imported, added, taken back, continued on another
// branch and removed, again and again.
//
// The clients work in rounds. After each round they leave, and what the service holds then,
// after a garbage collection, is sampled: under load, memory is mostly that of requests in
// progress, which would hide a leak. The first third of the rounds is for warming up: caches
// fill to their bounds. The second and the last third are compared.
const (
	rounds = 15
	// longestRest is how long a sample waits until the service has ended what the clients
	// left behind: the calls of a WebSocket whose client is gone may run until limits.time.
	longestRest = time.Minute
	restless    = 25 // goroutines more than before there were clients
)

// runSoak runs a soak of so long under load. The error says what has grown.
func runSoak(ctx context.Context, length time.Duration) (err error) {
	s, err := serve(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	profiles, err := os.MkdirTemp("", "ashlar-soak-")
	if err != nil {
		return err
	}
	clients, err := s.clients(ctx)
	if err != nil {
		return err
	}
	before, err := s.goroutines(ctx)
	if err != nil {
		return err
	}
	beside, stop := context.WithCancel(ctx)
	defer stop()
	group, beside := errgroup.WithContext(beside)
	group.Go(func() error { s.chain.announce(beside, s.upstream); return nil })
	b, err := newBrancher(s, clients.honest[0])
	if err != nil {
		return err
	}
	group.Go(func() error { return b.run(beside) })
	taken, err := s.rounds(beside, clients, length, before, profiles)
	stop()
	if err := errors.Join(err, group.Wait()); err != nil {
		return err
	}
	fmt.Printf("%d blocks followed, of which %d were replaced; a network made, rewound and removed %d times\n",
		s.chain.made, s.chain.made-len(s.chain.blocks)+1, b.rounds)
	if err := compare(taken); err != nil {
		return fmt.Errorf("%w\nheap profiles: %s", err, profiles)
	}
	return os.RemoveAll(profiles)
}

// rounds has the clients work for so long, and samples after each round.
func (s *served) rounds(ctx context.Context, clients clients, length time.Duration, goroutines float64, profiles string) (taken []held, err error) {
	for round := range rounds {
		if err := clients.load(ctx, length/rounds); err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
		h, err := s.sampleInto(ctx, goroutines, filepath.Join(profiles, fmt.Sprintf("round%02d", round+1)))
		if err != nil {
			return nil, err
		}
		taken = append(taken, h)
	}
	return taken, nil
}

// sampleInto waits until a service rests, samples and prints what it holds, and writes its
// heap profile to a file.
func (s *served) sampleInto(ctx context.Context, goroutines float64, file string) (h held, err error) {
	for end := time.Now().Add(longestRest); time.Now().Before(end); time.Sleep(500 * time.Millisecond) {
		now, err := s.goroutines(ctx)
		if err != nil {
			return h, fmt.Errorf("the service is gone: %w", err)
		}
		if now <= goroutines+restless {
			break
		}
	}
	if h, err = s.sample(ctx); err != nil {
		return h, err
	}
	fmt.Println(time.Now().Format(time.TimeOnly), filepath.Base(file), h)
	profile, err := s.ask(ctx, "/debug/pprof/heap")
	if err != nil {
		return h, err
	}
	return h, os.WriteFile(file+".pb.gz", []byte(profile), 0o600)
}

// clients are the clients of a soak.
type clients struct {
	honest, hostile []*client
}

// clients creates the accounts, with keys.
func (s *served) clients(ctx context.Context) (all clients, err error) {
	if all.honest, err = s.honest(ctx); err != nil {
		return all, err
	}
	for i := range ways() {
		keys, err := account(ctx, s.ashlar, fmt.Sprintf("hostile%d@example.org", i), 2)
		if err != nil {
			return all, err
		}
		all.hostile = append(all.hostile, newClient(s.host, keys, honestAccounts+1+i))
	}
	return all, nil
}

// load has all clients work for so long, and leave.
func (all clients) load(ctx context.Context, length time.Duration) error {
	ctx, stop := context.WithTimeout(ctx, length)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	for _, c := range all.honest {
		group.Go(func() error {
			defer c.http.CloseIdleConnections()
			if o := c.ask(ctx); o.failed > o.asked()/100 {
				return fmt.Errorf("%d of %d honest requests failed", o.failed, o.asked())
			}
			return nil
		})
	}
	for i, w := range ways() {
		c := all.hostile[i]
		group.Go(func() error {
			defer c.http.CloseIdleConnections()
			for ctx.Err() == nil { // again when the service has closed its connections
				_ = w.run(ctx, c)
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
	}
	return group.Wait()
}
