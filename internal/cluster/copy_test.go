package cluster

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"ashlar/internal/node"
)

// local returns a process with a data directory.
func local(t *testing.T) node.Ashlar {
	t.Helper()
	bin, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return node.Ashlar{Bin: bin, Network: network, Data: t.TempDir()}
}

// copyKilled copies, and kills the copy three times. In between the network is at the new
// place as a whole or not at all.
func copyKilled(t *testing.T, from, to node.Ashlar) {
	t.Helper()
	whole, err := from.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for kill := range 3 {
		p, err := from.Copy(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-p.Done():
			if _, err := p.Wait(); err != nil {
				t.Fatalf("%v:\n%s", err, p.Output())
			}
			t.Logf("the copy was complete after it was killed %d times", kill)
			return
		case <-time.After(time.Second + rand.N(2*time.Second)):
		}
		p.Kill()
		if report, err := to.Verify(t.Context()); err == nil && verified(report) != verified(whole) {
			t.Errorf("half a copy can be verified as a network: %s, expected %s", report, whole)
		}
	}
	copyWhole(t, from, to)
}

// verified returns what a report counts, without the time that it took. The report may be
// behind lines about progress.
func verified(report string) string {
	counts, _, _ := strings.Cut(report, " checked in ")
	return counts[strings.LastIndexByte(counts, '\n')+1:]
}

func copyWhole(t *testing.T, from, to node.Ashlar) {
	t.Helper()
	p, err := from.Copy(t.Context(), to)
	if err == nil {
		_, err = p.Wait()
	}
	if err != nil {
		t.Fatalf("%v:\n%s", err, p.Output())
	}
}
