package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// live subscribes to the heads of the demo with a new key, and waits for one.
func (b *tab) live() {
	b.Helper()
	b.open("/keys/new")
	b.follow("main form button.primary")
	key := b.text("#api-key")
	b.open("/console/live?network=demo")
	b.enter("#live-key", key)
	b.do(chromedp.Click(chromedp.CSS("#live button.primary")))
	b.waitFor("#live-messages", `"method": "eth_subscription"`)
}

// A visitor sees the messages of a subscription as they arrive, until it is stopped.
func TestLiveSubscriptions(t *testing.T) {
	t.Parallel()
	chromium(t)
	s := serve(t)
	b := openTab(t, s.url, true)
	b.signIn(s.operator, s.password)
	b.live()
	b.sees("#live-state", "connected")
	b.do(chromedp.Click(chromedp.CSS("#live button[type=button]")))
	b.waitFor("#live-state", "closed")
}

// waitFor waits until the text of an element contains want.
func (b *tab) waitFor(selector, want string) {
	b.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(b.text(selector), want); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.Fatalf("%s contains %q, expected %q", selector, b.text(selector), want)
		}
	}
}
