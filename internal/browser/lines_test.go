package browser

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ashlar/internal/vectors"

	"github.com/chromedp/chromedp"
)

// pasted is a command or program that a page offers for copying.
type pasted struct{ Network, Tool, Text string }

// shownLines returns everything that a page offers for copying.
const shownLines = `[...document.querySelectorAll(".lines")].flatMap((lines) =>
  [...lines.querySelectorAll("details")].map((one) => ({
    Network: lines.querySelector("h3").textContent,
    Tool: one.querySelector("summary").textContent,
    Text: one.querySelector("pre").textContent,
  })))`

// answered matches a block number as printed by the tools.
var answered = regexp.MustCompile(`(?m)^\d+n?$|"result":("0x[0-9a-f]+"|\d+)`)

// Everything offered for copying works unchanged, also for keys with a password.
func TestLinesToPaste(t *testing.T) {
	t.Parallel()
	chromium(t)
	folder := os.Getenv("ASHLAR_CLIENTS")
	if folder == "" {
		vectors.Missing(t, "needs client libraries: run internal/clients/install.sh DIR and set ASHLAR_CLIENTS to DIR")
	}
	s := serve(t)
	b := openTab(t, s.url, true)
	b.signIn(s.operator, s.password)
	for _, guarded := range []bool{false, true} {
		b.open("/keys/new")
		if guarded {
			b.do(chromedp.Click(chromedp.CSS("input[name=guarded]")))
		}
		b.follow("main form button.primary")
		b.there("#api-key")
		all := run(b, chromedp.Evaluate[[]pasted](shownLines))
		if len(all) < 7 {
			t.Fatalf("%d sets of lines, expected those of 5 tools and of 2 for Starknet\n%s", len(all), b.shown())
		}
		for _, one := range all {
			t.Run(fmt.Sprintf("%s on %s, password %t", one.Tool, one.Network, guarded), func(t *testing.T) {
				if out := one.run(t, folder); !answered.MatchString(out) {
					t.Errorf("%s\nprints %s", one.Text, out)
				}
			})
		}
	}
}

// run runs the text with its tool, and returns the output.
func (p pasted) run(t *testing.T, folder string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", "-c", p.Text)
	switch p.Tool {
	case "curl":
	case "cast":
		command.Env = append(os.Environ(), "PATH="+filepath.Join(folder, "node_modules", ".bin")+":"+os.Getenv("PATH"))
	case "web3.py":
		command = exec.CommandContext(t.Context(), filepath.Join(folder, "venv", "bin", "python"), "-c", p.Text)
	default:
		command = exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", p.Text)
		command.Dir = folder
	}
	var failure strings.Builder
	command.Stderr = &failure
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s\n%v: %s%s", p.Text, err, out, &failure)
	}
	return string(out)
}
