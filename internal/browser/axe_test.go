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

// judged returns the options of axe for a way to display pages: only the colors of a dark
// page differ from those of a light one, and everything but the colors on a narrow one.
func judged(l look) string {
	switch {
	case l.width < 1280:
		return `{rules: {"color-contrast": {enabled: false}}}`
	case l.scheme == "dark":
		return `{runOnly: ["color-contrast", "link-in-text-block"]}`
	}
	return `{}`
}

// judge fails the test if axe finds a fault on the current page. axe waits for timers, which
// need scripts to be allowed.
func (b *tab) judge(source, name string, l look) {
	b.Helper()
	if !b.scripts {
		b.allowScripts(true)
		defer b.allowScripts(false)
	}
	if !run(b, chromedp.Evaluate[bool]("'axe' in window")) {
		run(b, chromedp.Evaluate[bool](source+"; true"))
	}
	script := `axe.run(` + judged(l) + `).then((found) => found.violations.map((one) => one.id + ": " + one.nodes.map((node) => node.html).join(" ; ")))`
	if found := run(b, chromedp.Evaluate[[]string](script, chromedp.EvalAwaitPromise)); len(found) > 0 {
		b.Errorf("%s, %s: axe finds\n%s", name, l.name, strings.Join(found, "\n"))
	}
}
