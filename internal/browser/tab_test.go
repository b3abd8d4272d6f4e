package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"ashlar/internal/await"
	"ashlar/internal/node"
	"ashlar/internal/vectors"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/chromedp"
)

// service is a demo that runs until the test ends.
type service struct {
	url      string // of the dashboard, without the final slash
	operator string // e-mail address of an operator's account
	password string // of that account
}

var introduced = regexp.MustCompile(`(http://[0-9.:]+)/\n +(\S+@\S+)\n +(\S+)\n`)

func serve(t *testing.T) service {
	t.Helper()
	bin, err := node.BuildAshlar(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	process, _, err := node.Ashlar{Bin: bin, Data: t.TempDir()}.Demo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Kill)
	found := introduced.FindStringSubmatch(process.Output())
	if found == nil {
		t.Fatalf("the demo printed no dashboard:\n%s", process.Output())
	}
	return service{found[1], found[2], found[3]}
}

// chromium returns the path of the browser.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{os.Getenv("ASHLAR_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	vectors.Missing(t, "needs Chromium: install it, or name it in ASHLAR_CHROMIUM")
	return ""
}

// tab is a page in a new browser without cookies.
type tab struct {
	*testing.T
	ctx     context.Context
	base    string
	scripts bool // whether pages run theirs
}

// profile returns a folder for a browser's own files, which is removed when the test ends. Processes of a browser still write there for
// a moment after it has ended, so that a removal can find the folder filled again.
func profile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ashlar-browser-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		await.Until(t, "the browser's processes to leave "+dir, func() bool { return os.RemoveAll(dir) == nil })
	})
	return dir
}

func openTab(t *testing.T, base string, scripts bool) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile(t)), chromedp.WSURLReadTimeout(2*time.Minute),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true), chromedp.Flag("hide-scrollbars", true))
	ctx, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	b := &tab{t, ctx, base, scripts}
	b.do(chromedp.EmulateViewport(1280, 900))
	if err := chromedp.Listen(ctx, b.complain); err != nil {
		t.Fatal(err)
	}
	b.allowScripts(scripts)
	return b
}

// allowScripts reports whether the page and those opened later may run scripts.
func (b *tab) allowScripts(allowed bool) {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !allowed}); err != nil {
		b.Fatal(err)
	}
}

// complain fails the test for problems that the browser reports, such as violations of the content
// security policy.
func (b *tab) complain(event any) {
	if entry, ok := event.(*log.EventEntryAdded); ok && entry.Entry.Level == log.EntryLevelError && !strings.Contains(entry.Entry.Text, "the server responded with a status of 4") {
		b.Errorf("the browser reports: %s (%s)", entry.Entry.Text, entry.Entry.URL)
	}
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	if err := chromedp.Do(b.ctx, steps...); err != nil {
		b.Fatalf("%v\n%s", err, b.shown())
	}
}

// run runs an action with a result.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.Helper()
	result, err := chromedp.Run(b.ctx, action)
	if err != nil {
		b.Fatalf("%v\n%s", err, b.shown())
	}
	return result
}

// shown returns the text of the page, for messages.
func (b *tab) shown() string {
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("location.href + '\\n' + document.body.innerText"))
	if err != nil {
		return err.Error()
	}
	return text
}

// open opens a page and returns its status.
func (b *tab) open(path string) int64 {
	b.Helper()
	response := run(b, chromedp.NavigateResponse(b.base+path))
	return response.Status
}

// there fails the test if an element is not on the page. Actions that wait for a missing element
// would never end.
func (b *tab) there(selector string) {
	b.Helper()
	if !run(b, chromedp.Evaluate[bool](fmt.Sprintf("document.querySelector(%q) !== null", selector))) {
		b.Fatalf("%s is not on the page\n%s", selector, b.shown())
	}
}

// follow clicks on a link or button, and waits until the next page is loaded.
func (b *tab) follow(selector string) {
	b.Helper()
	b.there(selector)
	b.leads(chromedp.Click(chromedp.CSS(selector)))
}

// patience is how long a test waits for a page. It is far longer than anything takes.
const patience = 2 * time.Minute

// leads does what leads to another page, and waits until that is loaded. An action that leads nowhere would never
// end by itself.
func (b *tab) leads(action chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, action); err != nil {
		b.Fatalf("no other page: %v\n%s", err, b.shown())
	}
}

// enter types into a field.
func (b *tab) enter(selector, text string) {
	b.Helper()
	b.there(selector)
	b.do(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// text returns the text of an element.
func (b *tab) text(selector string) string {
	b.Helper()
	b.there(selector)
	return run(b, chromedp.TextContent(chromedp.CSS(selector)))
}

// sees fails the test unless the text of an element contains want.
func (b *tab) sees(selector, want string) {
	b.Helper()
	if text := b.text(selector); !strings.Contains(text, want) {
		b.Fatalf("%s contains %q, expected %q", selector, strings.Join(strings.Fields(text), " "), want)
	}
}

// signUp creates an account.
func (b *tab) signUp(email, password string) {
	b.Helper()
	b.getIn("/signup", email, password)
}

// signIn signs in to an existing account.
func (b *tab) signIn(email, password string) {
	b.Helper()
	b.getIn("/signin", email, password)
}

// getIn submits a form that leads to the pages of a signed-in user.
func (b *tab) getIn(path, email, password string) {
	b.Helper()
	b.open(path)
	b.enter("#email", email)
	b.enter("#password", password)
	b.follow("main form button.primary")
	b.there(".side")
}
