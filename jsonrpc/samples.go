package jsonrpc

import (
	"context"
	"sync"
	"time"
)

// sampleAge is how old the data of examples may become.
const sampleAge = time.Minute

// Samples keeps the data S of a network that examples are made of. The zero value is
// empty.
type Samples[S any] struct {
	mu   sync.Mutex // held while a sample is searched for
	last *S         // nil until one was asked for
	made time.Time
}

// Example returns a maker of examples for a [Param]. It passes to pick what find found at
// most a minute ago.
func (s *Samples[S]) Example(find func(context.Context) (*S, error), pick func(*S) any) func(context.Context) (any, error) {
	return func(ctx context.Context) (any, error) {
		sample, err := s.get(ctx, find)
		if err != nil {
			return nil, err
		}
		return pick(sample), nil
	}
}

func (s *Samples[S]) get(ctx context.Context, find func(context.Context) (*S, error)) (*S, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && time.Since(s.made) < sampleAge {
		return s.last, nil
	}
	found, err := find(ctx)
	if err != nil {
		return nil, err
	}
	s.last, s.made = found, time.Now()
	return found, nil
}
