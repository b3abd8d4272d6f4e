package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

type valueKey struct{}

func newDeadlineContext(parent context.Context, timeout time.Duration) *deadlineContext {
	c := new(deadlineContext)
	c.begin(parent, timeout)
	return c
}

// TestDeadlineContext uses synctest's fake clock, which advances only while all goroutines
// wait.
func TestDeadlineContext(t *testing.T) {
	parent := context.WithValue(context.Background(), valueKey{}, "value")
	open := func(ctx context.Context) bool {
		select {
		case <-ctx.Done():
			return false
		default:
			return true
		}
	}
	cases := map[string]func(t *testing.T, c *deadlineContext){
		"asked for Err only": func(t *testing.T, c *deadlineContext) {
			if c.Err() != nil {
				t.Error("ended at once")
			}
			time.Sleep(time.Second)
			if !errors.Is(c.Err(), context.DeadlineExceeded) || open(c) {
				t.Errorf("not over at its deadline: %v", c.Err())
			}
		},
		"waited for": func(t *testing.T, c *deadlineContext) {
			begun := time.Now()
			<-c.Done()
			if took := time.Since(begun); took != time.Second || !errors.Is(c.Err(), context.DeadlineExceeded) {
				t.Errorf("over after %v: %v", took, c.Err())
			}
		},
		"stopped": func(t *testing.T, c *deadlineContext) {
			if !open(c) {
				t.Error("ended at once")
			}
			c.stop()
			if open(c) || !errors.Is(c.Err(), context.Canceled) {
				t.Errorf("not over when stopped: %v", c.Err())
			}
		},
		"derived from": func(t *testing.T, c *deadlineContext) {
			child, cancel := context.WithCancel(c)
			defer cancel()
			if child.Value(valueKey{}) != "value" || c.Value(valueKey{}) != "value" {
				t.Error("the parent's value is lost")
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if !errors.Is(child.Err(), context.DeadlineExceeded) {
				t.Errorf("the child is not over: %v", child.Err())
			}
		},
	}
	for name, check := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newDeadlineContext(parent, time.Second)
				defer c.stop()
				check(t, c)
			})
		})
	}
}

func TestDeadlineContextFollowsItsParent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithTimeout(context.Background(), time.Second)
		c := newDeadlineContext(parent, time.Hour)
		defer c.stop()
		if at, ok := c.Deadline(); !ok || time.Until(at) != time.Second {
			t.Errorf("deadline in %v, expected the parent's", time.Until(at))
		}
		cancel()
		if !errors.Is(c.Err(), context.Canceled) {
			t.Errorf("unarmed: %v", c.Err())
		}
		<-c.Done()
	})
}
