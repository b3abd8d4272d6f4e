package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Arrow keys move through the choices of a list without leaving the page. A button, which is hidden from others,
// shows the result.
func TestChoicesByKeyboard(t *testing.T) {
	t.Parallel()
	chromium(t)
	url, _ := serveBusy(t, 80*24*time.Hour)
	b := openTab(t, url, true)
	b.signIn("busy@example.org", "a stone on a stone")
	b.open("/usage")
	run(b, chromedp.Evaluate[bool]("document.body.dataset.here = 'yes'; true"))
	b.do(chromedp.Focus(chromedp.CSS("#network")), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.Sleep(300*time.Millisecond))
	if state := run(b, chromedp.Evaluate[string](`document.body.dataset.here + " " + document.activeElement.id + " " + document.querySelector("#network").selectedIndex`)); state != "yes network 2" {
		t.Fatalf("after two arrow keys: %q", state)
	}
	b.follow("form[data-instant] button")
	if at := run(b, chromedp.Location()); !strings.Contains(at, "network=") {
		t.Errorf("the button leads to %s", at)
	}
}
