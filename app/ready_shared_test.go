package app

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/app/config"
	"ashlar/family"
)

// slow is a network that takes a time to say what it is.
type slow struct {
	family.Network
	takes time.Duration
	asked *atomic.Int64
}

func (s slow) Status(ctx context.Context) (family.Status, error) {
	s.asked.Add(1)
	select {
	case <-time.After(s.takes):
		return family.Status{}, nil
	case <-ctx.Done():
		return family.Status{}, ctx.Err()
	}
}

// TestReadyIsShared: many who ask at once whether the service is ready cost one check, which has a deadline and goes on without
// the one who began it. The next one to ask gets a new check.
func TestReadyIsShared(t *testing.T) {
	for name, test := range map[string]struct {
		takes time.Duration
		want  string // in the reason; empty: ready
	}{
		"ready":       {time.Second, ""},
		"not in time": {time.Hour, "network n: context deadline exceeded: the check has not ended within"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked atomic.Int64
				s := &Service{networks: []*Network{{Name: "n", Network: slow{takes: test.takes, asked: &asked}}}}
				ready := s.readyCheck(config.Config{})
				first, leave := context.WithCancel(t.Context())
				defer leave()
				answers := make(chan error, 100)
				for i := range cap(answers) {
					ctx := t.Context()
					if i == 0 {
						ctx = first
					}
					go func() { answers <- ready(ctx) }()
					if i == 0 {
						synctest.Wait()
						leave()
					}
				}
				for range cap(answers) {
					if err := <-answers; (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
						t.Errorf("%v, want %q", err, test.want)
					}
				}
				if n := asked.Load(); n != 1 {
					t.Errorf("the network was asked %d times, expected once", n)
				}
				if _ = ready(t.Context()); asked.Load() != 2 {
					t.Errorf("the network was asked %d times after another request, expected twice", asked.Load())
				}
			})
		})
	}
}
