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
	mu   sync.Mutex // held while finding a sample
	last *S         // nil until the first use
	made time.Time
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
