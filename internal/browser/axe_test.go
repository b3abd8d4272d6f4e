package browser

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/internal/vectors"

	"github.com/chromedp/chromedp"
)

// axe returns the source of axe-core, which finds faults of accessibility.
func axe(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("ASHLAR_CLIENTS")
	if folder == "" {
		vectors.Missing(t, "needs axe-core: run internal/clients/install.sh DIR and set ASHLAR_CLIENTS to DIR")
	}
	source, err := os.ReadFile(filepath.Join(folder, "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// runAxe returns what axe finds on the current page.
const runAxe = `axe.run().then((found) => found.violations.map((one) => one.id + ": " + one.nodes.map((node) => node.html).join(" ; ")))`

// judge fails the test if axe finds a fault on the current page.
func (b *tab) judge(source, name string) {
	b.Helper()
	run(b, chromedp.Evaluate[bool](source+"; true"))
	if found := run(b, chromedp.Evaluate[[]string](runAxe, chromedp.EvalAwaitPromise)); len(found) > 0 {
		b.Errorf("%s: axe finds\n%s", name, strings.Join(found, "\n"))
	}
}
