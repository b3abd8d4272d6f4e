package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// rounds returns rounds with these rates.
func rounds(rates ...int) (all []load) {
	for _, rate := range rates {
		all = append(all, load{Requests: rate, Seconds: 1, Calls: 1, P50Micros: 10, P99Micros: 20, CPUMicros: float64(1000 / max(rate, 1))})
	}
	return all
}

func TestTables(t *testing.T) {
	batch := rounds(3)
	batch[0].Calls = 100
	failing := rounds(50)
	failing[0].Errors = 10
	r := results{
		Blocks: 6, Transactions: 7, Peers: []*peer{{Name: "Ashlar", Disk: 1 << 20}, {Name: "geth", Disk: 3 << 20}},
		Kinds: []measured{
			{"requests", "eth_call", map[string][]load{"Ashlar": rounds(100, 300, 200), "geth": rounds(50), constantName: rounds(400)}, 50, nil, nil},
			{"requests", "eth_other", map[string][]load{"Ashlar": rounds(100), "geth": rounds(50)}, 20, map[string]int{"geth": 2}, nil},
			{"requests", "eth_late", map[string][]load{"Ashlar": rounds(100), "geth": rounds(50)}, 50, nil, map[string]float64{"geth": 0.25}},
			{"requests", "eth_revert", map[string][]load{"Ashlar": rounds(100), "geth": rounds(50)}, 50, nil, map[string]float64{"Ashlar": 1, "geth": 1}},
			{"requests", "eth_failed", map[string][]load{"Ashlar": rounds(100), "geth": failing}, 50, nil, nil},
			{"requests", "eth_none", map[string][]load{"Ashlar": rounds(0), "geth": rounds(0)}, 50, nil, nil},
			{"calls in batches of 100", "eth_call", map[string][]load{"Ashlar": batch}, 50, nil, nil},
			{"requests by age of the block", "eth_call, oldest", map[string][]load{"Ashlar": rounds(90)}, 50, nil, nil},
			{"requests by age of the block", "eth_call, newest", map[string][]load{"Ashlar": rounds(50, 150)}, 50, nil, nil},
			{"requests during an import", "eth_call", map[string][]load{"Ashlar": rounds(50)}, 50, nil, nil},
			{"requests over WebSocket", "eth_call, HTTP", map[string][]load{"Ashlar": rounds(100)}, 50, nil, nil},
			{"requests over WebSocket", "eth_call, WebSocket", map[string][]load{"Ashlar": rounds(150)}, 50, nil, nil},
		},
	}
	text := r.markdown()
	for _, line := range []string{
		"| requests per second | Ashlar | geth | ratio | of a constant answer |",
		"| eth_call | 200 | 50.0 | 4.00 x | 0.50 x |",
		"| eth_none | 0.0 | 0.0 | – | – |",
		"| eth_none | 10 / 20 / 1000 | 10 / 20 / 1000 | 1.00 x | – |",
		"| eth_other | 100 | 50.0 (2 of 20 answers differ) | not alike | – |",
		"| eth_other | 10 / 20 / 10 | 10 / 20 / 20 | not alike | 0 % |",
		"| eth_late | 10 / 20 / 10 | 10 / 20 / 20 | not alike | 0 % |",
		"| eth_revert | 10 / 20 / 10 | 10 / 20 / 20 | 2.00 x | 0 % |",
		"| eth_failed | 100 | 50.0 (10 failed) | not alike | – |",
		"| eth_late | 100 | 50.0 (25 % errors) | not alike | – |",
		"| eth_revert | 100 (100 % errors) | 50.0 (100 % errors) | 2.00 x | – |",
		"| calls in batches of 100 per second | Ashlar | geth | ratio | of single requests |",
		"| eth_call | 300 | – | – | 1.50 x |",
		"| eth_call, oldest | 90.0 | – | – | 0.90 x |",
		"| eth_call | 50.0 | – | – | 0.25 x |",
		"| requests during an import: p50 / p99 / processor time, µs | Ashlar | geth | processor ratio | rounds differ by |",
		"| eth_call, HTTP | 100 | – | – | – |",
		"| eth_call, WebSocket | 150 | – | – | 1.50 x |",
		"| eth_call | 10 / 20 / 5 | 10 / 20 / 20 | 4.00 x | 200 % |",
		"| disk | 1 MiB | 3 MiB | 0.33 x |  |",
	} {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("line %s is missing in\n%s", line, text)
		}
	}
	if err := r.write(io.Discard, filepath.Join(t.TempDir(), "results.json")); err != nil {
		t.Error(err)
	}
	file := filepath.Join(t.TempDir(), "picture.svg")
	if err := r.draw(file); err != nil {
		t.Fatal(err)
	}
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := string(picture); !strings.Contains(got, ">eth_call<") || strings.Contains(got, ">eth_other<") {
		t.Errorf("picture has the wrong kinds (want only those with equal answers):\n%s", got)
	}
}
