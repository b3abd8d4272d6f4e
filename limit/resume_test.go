package limit

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
)

// A call that had a slot before is served before the new calls of its caller, and in turn with those of others.
func TestPoolResumesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1, 100)
		var first, a, b Share
		if err := p.Enter(t.Context(), &first); err != nil {
			t.Fatal(err)
		}
		var order strings.Builder // written by who has the only slot
		enter := func(s *Share, name string, resumes bool) {
			go func() {
				if err := p.enter(t.Context(), s, resumes); err != nil {
					t.Error(err)
				}
				order.WriteString(name)
				p.Leave(s)
			}()
			synctest.Wait()
		}
		enter(&a, "a1", false)
		enter(&a, "a2", false)
		enter(&b, "b1", false)
		enter(&a, "r1", true)
		enter(&b, "r3", true)
		enter(&a, "r2", true)
		p.Leave(&first)
		synctest.Wait()
		if want := "r1r3r2b1a1a2"; order.String() != want {
			t.Errorf("order %s, expected %s", order.String(), want)
		}
	})
}

// A full queue drops new calls rather than those that had a slot before.
func TestPoolDropsNewCallsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(1, 2)
		var first, s Share
		if err := p.Enter(t.Context(), &first); err != nil {
			t.Fatal(err)
		}
		fresh := waiting(t.Context(), p, &s, 2)
		resumed := make(chan error, 3)
		for range 3 {
			go func() { resumed <- p.Resume(t.Context(), &s) }()
			synctest.Wait()
		}
		for range 2 {
			if err := <-fresh; !errors.Is(err, ErrBusy) {
				t.Errorf("a new call: %v, expected %v", err, ErrBusy)
			}
		}
		if err := <-resumed; !errors.Is(err, ErrBusy) { // of calls that had slots there are too many, too
			t.Errorf("the third call that had a slot: %v, expected %v", err, ErrBusy)
		}
		p.Leave(&first)
		for range 2 {
			if err := <-resumed; err != nil {
				t.Error(err)
			}
			p.Leave(&s)
		}
		if p.Running() != 0 || p.Waiting() != 0 {
			t.Errorf("%d calls run and %d wait, expected none", p.Running(), p.Waiting())
		}
	})
}

// TryEnter gives one caller half of the slots, the next half of what is left, and each of them one, if that leaves a
// quarter of all slots free.
func TestPoolTriesToEnter(t *testing.T) {
	for _, c := range []struct{ slots, first, second, third int }{
		{1, 1, 0, 0}, {2, 1, 1, 0}, {4, 2, 1, 0}, {8, 4, 2, 0}, {10, 5, 2, 1}, {128, 64, 32, 0},
	} {
		t.Run(strconv.Itoa(c.slots), func(t *testing.T) {
			p := NewPool(c.slots, 0)
			var shares [3]Share
			for i, expected := range []int{c.first, c.second, c.third} {
				got := 0
				for p.TryEnter(&shares[i]) {
					got++
				}
				if got != expected {
					t.Errorf("caller %d has %d slots, expected %d", i, got, expected)
				}
			}
			if p.Waiting() != 0 {
				t.Errorf("%d calls wait", p.Waiting())
			}
		})
	}
}

// A call that finds another one of its caller just trying to enter waits, also for a slot that is free. So a try that
// fails serves those that wait.
func TestPoolServesAfterTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(2, 100)
		full, s := Share{Most: 1}, Share{}
		if err := p.Enter(t.Context(), &full); err != nil {
			t.Fatal(err)
		}
		s.running.Add(1) // a try in the middle
		entered := waiting(t.Context(), p, &s, 1)
		s.running.Add(-1)
		if p.TryEnter(&full) {
			t.Fatal("a call runs beyond the bound of its caller")
		}
		synctest.Wait()
		if p.Running() != 2 || p.Waiting() != 0 {
			t.Fatalf("%d calls run and %d wait, expected 2 and 0", p.Running(), p.Waiting())
		}
		if err := <-entered; err != nil {
			t.Error(err)
		}
		p.Leave(&s)
		p.Leave(&full)
	})
}
