package main

import "testing"

// The comparison finds what grows, and only that.
func TestCompare(t *testing.T) {
	steady := func(i int) held {
		return held{live: float64((40 + i%3) << 20), native: 100 << 20, resident: 500 << 20, goroutines: 50 + float64(i%7), files: 40}
	}
	for name, c := range map[string]struct {
		at   func(i int) held
		fail bool
	}{
		"steady":     {steady, false},
		"warming up": {func(i int) held { h := steady(i); h.live += float64(min(i, 5)) * (8 << 20); return h }, false},
		"free heap":  {func(i int) held { h := steady(i); h.resident += float64(i) * (32 << 20); return h }, false},
		"heap":       {func(i int) held { h := steady(i); h.live += float64(i) * (2 << 20); return h }, true},
		"native":     {func(i int) held { h := steady(i); h.native += float64(i) * (10 << 20); return h }, true},
		"goroutines": {func(i int) held { h := steady(i); h.goroutines += float64(i) * 6; return h }, true},
		"files":      {func(i int) held { h := steady(i); h.files += float64(i) * 6; return h }, true},
	} {
		var taken []held
		for i := range rounds {
			taken = append(taken, c.at(i))
		}
		if err := compare(taken); (err != nil) != c.fail {
			t.Errorf("%s: %v", name, err)
		}
	}
	if compare(make([]held, 8)) == nil {
		t.Error("too few samples are enough")
	}
}

// A branch shares its first blocks with the other one.
func TestChainBranches(t *testing.T) {
	c := newChain(4)
	first := c.blocks
	c.drop(2)
	c.grow(3)
	if len(c.blocks) != 6 || c.blocks[2] != first[2] || c.blocks[3].Hash() == first[3].Hash() || c.blocks[5].ParentHash() != c.blocks[4].Hash() {
		t.Errorf("%d blocks, or wrong ones", len(c.blocks))
	}
	if n := len(c.blocks[5].Transactions()); n != chainTxs {
		t.Errorf("%d transactions, expected %d", n, chainTxs)
	}
}
