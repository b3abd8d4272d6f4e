package jsonrpc

import (
	"context"
	"sync"
	"time"
)

// sampleAge is how long a sample is reused.
const sampleAge = time.Minute

// Samples caches data of type S from which a network's examples are made. The zero value is
// empty.
type Samples[S any] struct {
	mu      sync.Mutex
	last    *S            // guarded by mu; nil until the first use
	made    time.Time     // guarded by mu
	finding chan struct{} // guarded by mu; closed when a call of find has ended; nil: none runs
}

// Example returns an example function for a [Param]. It passes the result of find, which
// may be up to a minute old, to pick.
func (s *Samples[S]) Example(find func(context.Context) (*S, error), pick func(*S) any) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		sample, err := s.get(ctx, find)
		if err != nil {
			return nil, err
		}
		return pick(sample), nil
	}
}

// get returns a sample. One caller at a time finds one; the others wait for it, each no longer than
// its own context allows: a node that does not answer may keep the first one waiting.
func (s *Samples[S]) get(ctx context.Context, find func(context.Context) (*S, error)) (*S, error) {
	for {
		sample, other := s.begin()
		if sample != nil {
			return sample, nil
		}
		if other == nil {
			return s.find(ctx, find)
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// begin returns the sample if there is a recent one. Otherwise it returns a channel that is closed when
// another caller has ended finding one, or nil if this caller is to find one.
func (s *Samples[S]) begin() (sample *S, other <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.last != nil && time.Since(s.made) < sampleAge:
		return s.last, nil
	case s.finding != nil:
		return nil, s.finding
	}
	s.finding = make(chan struct{})
	return nil, nil
}

// find finds a sample, after begin.
func (s *Samples[S]) find(ctx context.Context, find func(context.Context) (*S, error)) (found *S, err error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && found != nil {
			s.last, s.made = found, time.Now()
		}
		close(s.finding)
		s.finding = nil
	}()
	return find(ctx)
}
