package browser

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"ashlar/internal/vectors"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
)

// needsCurl skips a test that pastes commands where there is no curl or no shell.
func needsCurl(t *testing.T) {
	t.Helper()
	for _, program := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(program); err != nil {
			vectors.Missing(t, "needs "+program+": "+err.Error())
		}
	}
}

// A new user takes the complete path: signs up, creates a key, runs the command shown with it, tries
// a request in the console, sees both in the usage, revokes the key, and is rejected. Everything
// works without scripts too.
func TestNewPerson(t *testing.T) {
	t.Parallel()
	needsCurl(t)
	chromium(t)
	s := serve(t)
	for name, scripts := range map[string]bool{"with scripts": true, "without scripts": false} {
		t.Run(name, func(t *testing.T) {
			b := openTab(t, s.url, scripts)
			b.open("/")
			b.follow("header a[href='/signup']")
			b.enter("#email", strings.ReplaceAll(name, " ", "-")+"@example.org")
			b.enter("#password", "a stone on a stone")
			b.follow("main form button.primary")
			b.sees(".notice", "Welcome")

			line := b.createKey(scripts)
			if out := paste(t, line); !strings.Contains(out, `"result":"0x`) {
				t.Fatalf("%s\nanswers %s", line, out)
			}
			b.tryConsole()
			b.seeUsage()
			b.revoke()
			if out := paste(t, line); !strings.Contains(out, "invalid project id") || !strings.HasSuffix(out, "401") {
				t.Errorf("with a revoked key\n%s\nanswers %s", line, out)
			}
		})
	}
}

// createKey creates a key and returns the curl command shown with it.
func (b *tab) createKey(scripts bool) (line string) {
	b.Helper()
	b.follow(".side nav a[href='/keys']")
	b.follow("a.primary[href='/keys/new']")
	b.enter("#name", "First steps")
	b.follow("main form button.primary")
	key := b.text("#api-key")
	line = b.text(".lines details pre")
	if !strings.Contains(line, "/v3/"+key) || len(key) != 32 {
		b.Fatalf("the key is %q, the line to paste %q", key, line)
	}
	if scripts {
		b.copies(line)
	}
	b.follow("a.button[href^='/keys/']")
	for _, path := range []string{"/keys", "/", "/console"} {
		b.open(path)
		if page := run(b, chromedp.Evaluate[string]("document.documentElement.outerHTML")); strings.Contains(page, key) {
			b.Errorf("%s shows the key again", path)
		}
	}
	return line
}

// copies presses the copy button next to a command, and checks the clipboard.
func (b *tab) copies(line string) {
	b.Helper()
	for _, name := range []string{"clipboard-read", "clipboard-write"} {
		if _, err := chromedp.CallBrowser(b.ctx, browser.SetPermission, browser.SetPermissionParams{
			Permission: &browser.PermissionDescriptor{Name: name}, Setting: browser.PermissionSettingGranted,
		}); err != nil {
			b.Fatal(err)
		}
	}
	b.there(".lines details .copy button")
	b.do(chromedp.Click(chromedp.CSS(".lines details .copy button")))
	if copied := run(b, chromedp.Evaluate[string]("navigator.clipboard.readText()", chromedp.EvalAwaitPromise)); copied != line {
		b.Errorf("copied %q, expected %q", copied, line)
	}
	b.do(chromedp.Reload())
	if at := run(b, chromedp.Location()); !strings.Contains(at, "/keys/") || strings.HasSuffix(at, "/new") {
		b.Errorf("loading the page of a new key again leads to %s", at)
	}
}

// paste runs a command in a shell and returns its output.
func paste(t *testing.T, line string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", line+` -s -w '%{http_code}'`).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return string(out)
}

// tryConsole sends a request in the console and checks the answer.
func (b *tab) tryConsole() {
	b.Helper()
	b.follow(".side nav a[href='/console']")
	b.choose("#key", "First steps")
	b.sees("#request", "eth_getBlockByNumber")
	b.follow("form[aria-labelledby=by-request] button.primary")
	b.sees("#answer .badge", "HTTP 200")
	b.sees("#answer pre", `"parentHash": "0x`)
}

// choose selects an option of a list by its label. Without scripts it also presses the button that
// applies the choice. It does not type the label: each key can be a choice, and so lead to another
// page, of which only the first is waited for.
func (b *tab) choose(selector, label string) {
	b.Helper()
	b.there(selector)
	pick := chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`{
		const list = document.querySelector(%q)
		list.value = [...list.options].find(option => option.label.includes(%q)).value
		list.dispatchEvent(new Event("change", {bubbles: true}))
	}`, selector, label))
	if run(b, chromedp.Evaluate[bool]("document.querySelector('form[data-instant] button').hidden")) {
		b.leads(pick)
		return
	}
	b.do(pick)
	b.follow("form[data-instant] button")
}

// seeUsage checks the usage of the key.
func (b *tab) seeUsage() {
	b.Helper()
	b.follow(".side nav a[href='/usage']")
	b.sees("main", "First steps")
	b.sees("main", "eth_blockNumber")
	b.sees("main", "eth_getBlockByNumber")
	b.there(".picture svg rect.series1")
}

// revoke revokes the key.
func (b *tab) revoke() {
	b.Helper()
	b.follow(".side nav a[href='/keys']")
	b.follow("tbody a[href^='/keys/']")
	b.follow("a.danger")
	b.sees("h1", "Revoke this key?")
	b.follow("main form button.danger")
	b.sees(".notice", "First steps was revoked")
}
