package main

import "testing"

// The comparison finds what grows, and only that.
func TestCompare(t *testing.T) {
	steady := func(i int) held { return held{100 << 20, 500 + float64(i%7), 300} }
	for name, c := range map[string]struct {
		at   func(i int) held
		fail bool
	}{
		"steady":     {steady, false},
		"warming up": {func(i int) held { h := steady(i); h.bytes += float64(min(i, 30)) * (8 << 20); return h }, false},
		"memory":     {func(i int) held { h := steady(i); h.bytes += float64(i) * (2 << 20); return h }, true},
		"goroutines": {func(i int) held { h := steady(i); h.goroutines += float64(i) * 10; return h }, true},
		"files":      {func(i int) held { h := steady(i); h.files += float64(i) * 10; return h }, true},
	} {
		var taken []held
		for i := range 90 {
			taken = append(taken, c.at(i))
		}
		if err := compare(taken); (err != nil) != c.fail {
			t.Errorf("%s: %v", name, err)
		}
	}
	if compare(make([]held, 20)) == nil {
		t.Error("too few samples are enough")
	}
	if returned(held{0, 50, 40}, held{0, 400, 40}) == nil || returned(held{0, 50, 40}, held{0, 60, 50}) != nil {
		t.Error("what is left at the end is not compared")
	}
}
