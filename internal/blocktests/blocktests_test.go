package blocktests

import (
	"context"
	"flag"
	"regexp"
	"runtime"
	"testing"
	"time"

	"ashlar/internal/vectors"

	"golang.org/x/sync/errgroup"
)

// sampledEvery is how many tests of a network come for one in the sample. The first
// of every network is in it.
const sampledEvery = 8

// Flags of a test are variables of its package: it is the testing package that parses them.
var (
	wholeFlag = flag.Bool("whole", false, "run all block tests, not a sample of them")
	onlyFlag  = flag.String("only", "", "run all block tests whose file and name match the regular `expression`, and no others")
)

func TestExecutionSpecTests(t *testing.T) { runAll(t, "eest-half.tar.gz") }

func TestAmsterdam(t *testing.T) { runAll(t, "amsterdam-half.tar.gz") }

func TestEthereumTests(t *testing.T) { runAll(t, "ethereum-tests.tar.gz") }

// runAll runs the chosen tests of an archive, as many at once as there are processors.
func runAll(t *testing.T, archive string) {
	path := vectors.Path(t, archive)
	only, err := regexp.Compile(*onlyFlag)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	totals := newTotals()
	group, ctx := errgroup.WithContext(t.Context())
	queue := make(chan encodedTest)
	group.Go(func() error {
		defer close(queue)
		return readArchive(path, func(test encodedTest) error {
			return choose(ctx, test, only, totals, queue)
		})
	})
	for range runtime.GOMAXPROCS(0) {
		dir := t.TempDir()
		group.Go(func() error {
			for test := range queue {
				runOne(ctx, t, dir, test, totals)
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s, in %.1f s:\n%s", archive, time.Since(began).Seconds(), totals)
}

// choose hands a test on if it is of the sample.
func choose(ctx context.Context, test encodedTest, only *regexp.Regexp, totals *totals, queue chan<- encodedTest) error {
	network, err := test.network()
	if err != nil {
		return err
	}
	position := totals.found(network)
	if *onlyFlag != "" {
		if !only.MatchString(test.file + ": " + test.name) {
			return nil
		}
	} else if !*wholeFlag && position%sampledEvery != 0 {
		return nil
	}
	select {
	case queue <- test:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func runOne(ctx context.Context, t *testing.T, dir string, test encodedTest, totals *totals) {
	v, err := test.decode()
	if err != nil {
		t.Error(err)
		return
	}
	r, err := run(ctx, dir, v)
	if err != nil {
		t.Errorf("%s (%s): %v", v, v.Network, err)
	}
	totals.ran(v, r, err != nil)
}
