package crashes

import (
	"context"
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"ashlar/internal/await"
)

const rewindSeed = 5

// TestKillRewind kills rewinds, as processes, at random moments, and runs each again until it
// completes. The store is then equal to that of an import of the blocks that are left, and at
// the end, after an import of the others, to that of the whole chain.
func TestKillRewind(t *testing.T) {
	t.Parallel()
	e := generateExport(t)
	bin := build(t)
	half := export{e.genesis, e.files[:len(e.files)/2]}
	short, long := newNetwork(t, bin), newNetwork(t, bin)
	short.mustImport(t, half)
	long.mustImport(t, e)
	to, err := short.head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	wantShort, wantLong := short.contents(t), long.contents(t)

	wanted := killsOf(kills/2, wholeKills/2)
	random := rand.New(rand.NewPCG(rewindSeed, 0))
	var landed, refused, completed int
	whole := time.Second // about how long a rewind takes, after the first one
	// On a busy machine few kills hit a rewind.
	for landed < wanted || refused == 0 && landed < 5*wanted {
		started := time.Now()
		p, err := long.Rewind(t.Context(), to)
		if err != nil {
			t.Fatal(err)
		}
		if killAfter(p, time.Duration(random.Int64N(int64(whole)))) {
			landed++
			if refusesHalf(t, long) {
				refused++
			} else {
				whole += whole / 4 // on a busy machine a rewind may begin later
			}
			continue
		}
		if _, err := p.Wait(); err != nil {
			t.Fatal(err)
		}
		whole = time.Since(started)
		completed++
		if err := wantShort.differ(long.contents(t)); err != nil {
			t.Errorf("after %d kills of seed %d: %v", landed, rewindSeed, err)
		}
		long.mustImport(t, e)
		if err := wantLong.differ(long.contents(t)); err != nil {
			t.Errorf("after %d kills of seed %d and an import: %v", landed, rewindSeed, err)
		}
	}
	if refused == 0 {
		t.Errorf("none of %d kills left a rewind that was under way", landed)
	}
	t.Logf("%d kills, %d of them with rows removed already, %d rewinds completed", landed, refused, completed)
}

// refusesHalf reports whether a rewind is under way. If so, the network must not be served.
func refusesHalf(t *testing.T, n network) bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), n.Bin, "verify", "--data", n.Data, "--network", n.Network).CombinedOutput()
	if err == nil {
		return false
	}
	if !strings.Contains(string(out), "a rewind is not complete") {
		t.Errorf("ashlar verify after a kill: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Patience)
	defer cancel()
	if out, err := exec.CommandContext(ctx, n.Bin, "serve", "--data", n.Data, "--listen", "127.0.0.1:0").CombinedOutput(); err == nil || !strings.Contains(string(out), "a rewind is not complete") {
		t.Errorf("ashlar serve after a kill: %v\n%s", err, out)
	}
	return true
}
