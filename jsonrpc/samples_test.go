package jsonrpc

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Callers wait for the one that finds a sample, but no longer than they may.
func TestSamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Samples[string]
		calls := 0
		hangs := func(ctx context.Context) (*string, error) {
			calls++
			<-ctx.Done()
			return nil, ctx.Err()
		}
		finds := func(context.Context) (*string, error) {
			calls++
			time.Sleep(time.Second)
			found := "a sample"
			return &found, nil
		}
		within := func(find func(context.Context) (*string, error), most time.Duration) chan error {
			ended := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), most)
				defer cancel()
				_, err := s.Example(find, func(s *string) any { return *s })(ctx)
				ended <- err
			}()
			synctest.Wait()
			return ended
		}

		began := time.Now()
		first, impatient, patient := within(hangs, 10*time.Second), within(finds, time.Second), within(finds, 20*time.Second)
		if err := <-impatient; !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("the impatient caller got %v after %s", err, time.Since(began))
		}
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the first caller got %v", err)
		}
		if err := <-patient; err != nil || time.Since(began) != 11*time.Second {
			t.Errorf("the patient caller got %v after %s", err, time.Since(began))
		}
		if err := <-within(hangs, time.Second); err != nil || calls != 2 {
			t.Errorf("with a sample: %v, after %d calls", err, calls)
		}
	})
}

// What comes with an error is not a sample, and is not kept.
func TestSampleWithAnError(t *testing.T) {
	var s Samples[string]
	part, whole, failed := "a part", "a sample", errors.New("the rest cannot be read")
	for _, test := range []struct {
		found *string
		err   error
	}{{&part, failed}, {&whole, nil}} {
		got, err := s.get(t.Context(), func(context.Context) (*string, error) { return test.found, test.err })
		if err != test.err || err == nil && *got != *test.found {
			t.Errorf("got %v, %v, want %q, %v", got, err, *test.found, test.err)
		}
	}
}
