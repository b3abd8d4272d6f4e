package execute

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestCallContext uses synctest's fake clock, which advances only while all goroutines wait.
func TestCallContext(t *testing.T) {
	cases := map[string]func(t *testing.T, c *callContext, leave context.CancelFunc){
		"short": func(t *testing.T, c *callContext, _ context.CancelFunc) {
			called := false
			stop := afterFunc(c, func() { called = true })
			time.Sleep(shortCall / 2)
			stop()
			c.stop()
			time.Sleep(time.Minute)
			synctest.Wait()
			if called || c.armed.Load() != nil {
				t.Errorf("a short call: ended %v, armed %v", called, c.armed.Load() != nil)
			}
		},
		"long": func(t *testing.T, c *callContext, _ context.CancelFunc) {
			var ended time.Duration
			begun := time.Now()
			stop := afterFunc(c, func() { ended = time.Since(begun) })
			defer stop()
			time.Sleep(time.Minute)
			synctest.Wait()
			if ended != time.Second || !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Errorf("ended after %v: %v", ended, c.Err())
			}
		},
		"client leaves": func(t *testing.T, c *callContext, leave context.CancelFunc) {
			called := false
			stop := afterFunc(c, func() { called = true })
			defer stop()
			leave()
			time.Sleep(shortCall)
			synctest.Wait()
			if !called || !errors.Is(c.Err(), context.Canceled) {
				t.Errorf("ended %v after %v: %v", called, shortCall, c.Err())
			}
		},
		"waited for": func(t *testing.T, c *callContext, _ context.CancelFunc) {
			begun := time.Now()
			<-c.Done()
			if took := time.Since(begun); took != time.Second || !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Errorf("over after %v: %v", took, c.Err())
			}
		},
		"two functions": func(t *testing.T, c *callContext, leave context.CancelFunc) {
			var called atomic.Int32
			defer afterFunc(c, func() { called.Add(1) })()
			defer afterFunc(c, func() { called.Add(1) })()
			leave()
			synctest.Wait()
			if n := called.Load(); n != 2 {
				t.Errorf("%d of 2 functions were called", n)
			}
		},
		"stopped, then derived from": func(t *testing.T, c *callContext, _ context.CancelFunc) {
			c.stop()
			child, cancel := context.WithCancel(c)
			defer cancel()
			synctest.Wait()
			if !errors.Is(child.Err(), context.Canceled) {
				t.Errorf("a child of a stopped context: %v", child.Err())
			}
		},
	}
	for name, check := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				parent, leave := context.WithCancel(t.Context())
				defer leave()
				c := newCallContext(parent, time.Second)
				defer c.stop()
				check(t, c, leave)
			})
		})
	}
}
