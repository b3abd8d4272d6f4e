package blocktests

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// totals counts what tests came to, by their network.
type totals struct {
	mu     sync.Mutex
	of     map[string]*total // guarded by mu
	forked []string          // guarded by mu; tests with more than one chain
}

type total struct {
	result
	files    map[string]bool
	found    int // tests, of which
	ran      int // were run
	failures int
}

func newTotals() *totals { return &totals{of: make(map[string]*total)} }

// found counts a test that there is, and returns how many there were before of its network.
func (t *totals) found(network string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.of[network]
	if n == nil {
		n = &total{files: make(map[string]bool)}
		t.of[network] = n
	}
	n.found++
	return n.found - 1
}

// ran counts a test that was run.
func (t *totals) ran(v *vector, r result, failed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.of[v.Network]
	n.files[v.file] = true
	n.ran++
	n.result.add(r)
	if failed {
		n.failures++
	}
	if r.aside > 0 {
		t.forked = append(t.forked, v.String())
	}
}

// String is a table with a line for each network, and what was left out.
func (t *totals) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "files\ttests\trun\tfailed\tvalid blocks\tof these aside\trefused blocks\tof these repaired\ttransactions skipped to\t  network\n")
	line := func(name string, n *total) {
		fmt.Fprintf(table, "%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t  %s\n", len(n.files), n.found, n.ran, n.failures, n.valid, n.aside, n.refused, n.repaired, n.skipped, name)
	}
	all := &total{files: make(map[string]bool)}
	for _, name := range slices.Sorted(maps.Keys(t.of)) {
		n := t.of[name]
		line(name, n)
		maps.Copy(all.files, n.files)
		all.found, all.ran, all.failures = all.found+n.found, all.ran+n.ran, all.failures+n.failures
		all.result.add(n.result)
	}
	line("all", all)
	table.Flush()
	if len(t.forked) > 0 {
		slices.Sort(t.forked)
		fmt.Fprintf(&text, "left out of %d tests, as an import takes one chain: which of their chains is the best (all are imported, each by itself):\n  %s\n",
			len(t.forked), strings.Join(t.forked, "\n  "))
	}
	return text.String()
}
