package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// look is a way to display pages.
type look struct {
	name   string
	scheme string // prefers-color-scheme
	width  int64
	opens  bool // whether pages are opened in this look, instead of changing that of the open page
}

// looks returns all looks. No script of the dashboard depends on the width or the color scheme, so an open page
// changes to what it would be if it were opened again. Pages are opened on a narrow screen too, because what leads to them
// must be usable there.
func looks() []look {
	return []look{{"light", "light", 1280, true}, {"dark", "dark", 1280, false}, {"narrowest", "dark", 320, true}, {"narrow", "light", 375, false}}
}

// screenshots returns the folder for screenshots, which it creates. It is empty if none are taken.
func screenshots(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("ASHLAR_SCREENSHOTS")
	if folder == "" {
		return ""
	}
	if !filepath.IsAbs(folder) {
		t.Fatalf("ASHLAR_SCREENSHOTS=%q: expected an absolute path, since tests run in the folder of their package", folder)
	}
	if os.Getenv("ASHLAR_CLIENTS") == "" { // the tests that display pages would be skipped, which go test does not say
		t.Fatal("ASHLAR_SCREENSHOTS is set, but no page is displayed without axe-core: run internal/clients/install.sh DIR and set ASHLAR_CLIENTS to DIR")
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}

// shot is a page to display.
type shot struct {
	name string
	open func(*tab)
}

// Every page fits the width of the screen, has one heading, labels all its fields, and causes no
// complaints by the browser. Screenshots are saved if a folder is given.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	chromium(t)
	folder := screenshots(t)
	s := serve(t)
	b := openTab(t, s.url, true)
	b.open("/")
	b.do(chromedp.KeyEvent("\t"))
	if first := run(b, chromedp.Evaluate[string]("document.activeElement.textContent")); first != "Skip to content" {
		t.Errorf("the first thing that a keyboard reaches is %q", first)
	}
	for _, one := range strangersPages() {
		b.lookAt(one, folder)
	}
	named := openTab(t, s.url, true)
	named.signUp(longEmail(), "a stone on a stone")
	named.makeLong()
	for _, one := range namedPages() {
		named.lookAt(one, folder)
	}
	b.signIn(s.operator, s.password)
	b.use()
	for _, one := range operatorsPages(s.password) {
		b.lookAt(one, folder)
	}
	url, _ := serveBusy(t, 0)
	provided := openTab(t, url, true)
	provided.lookAt(shot{"provider-refused", at("/signin/provider/back?error=access_denied")}, folder)
	provided.signIn("busy@example.org", "a stone on a stone")
	provided.open("/account")
	provided.enter("#provider-password", "a stone on a stone")
	provided.follow("form[action='/account/provider'] button")
	provided.lookAt(shot{"provider", func(b *tab) { b.there("a[href*='/auth?']") }}, folder)
}

// lookAt displays a page in all ways.
func (b *tab) lookAt(one shot, folder string) {
	source := axe(b.T)
	for _, l := range looks() {
		b.do(chromedp.EmulateViewport(l.width, 900))
		if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			// Without motion, colors change at once.
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}},
		}); err != nil {
			b.Fatal(err)
		}
		if l.opens {
			one.open(b)
		}
		if problems := run(b, chromedp.Evaluate[[]string](faults)); len(problems) > 0 {
			b.Errorf("%s, %s: %q", one.name, l.name, problems)
		}
		if l.width != 320 { // as wide as 375 for axe
			b.judge(source, one.name, l)
		}
		if folder == "" {
			continue
		}
		path := filepath.Join(folder, fmt.Sprintf("%s-%s.png", one.name, l.name))
		if err := os.WriteFile(path, run(b, chromedp.FullScreenshot(100)), 0o644); err != nil {
			b.Fatal(err)
		}
	}
}

// faults returns the problems of the current page.
const faults = `(() => {
  const wrong = [];
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) wrong.push("it is " + wide + " wide on a screen of " + innerWidth);
  for (const box of document.querySelectorAll(".card, .card *"))
    if (getComputedStyle(box).overflowX === "hidden" && getComputedStyle(box).clipPath === "none" && box.scrollWidth > box.clientWidth)
      wrong.push("something is cut off and cannot be scrolled to: " + box.textContent.trim().slice(0, 80));
  const controls = [...document.querySelectorAll(".fields :is(input, select, textarea)")].map((one) => [one.name, one.getBoundingClientRect()]);
  for (const [name, one] of controls)
    for (const [other, two] of controls)
      if (one.top < two.top && two.top < one.bottom) wrong.push("the fields " + name + " and " + other + " do not stand level");
  const fits = (field, text) => {
    const style = getComputedStyle(field), ruler = document.createElement("span");
    ruler.style.cssText = "position: absolute; white-space: nowrap; visibility: hidden";
    ruler.style.font = style.font;
    ruler.textContent = text;
    document.body.append(ruler);
    const needed = ruler.getBoundingClientRect().width + 16; // the arrow of a choice, or the cross of a search
    ruler.remove();
    return needed <= field.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  };
  const broken = (element) => {
    const text = document.createRange();
    text.selectNodeContents(element);
    return text.getClientRects().length > 1;
  };
  for (const field of document.querySelectorAll("[placeholder]"))
    if (field.checkVisibility() && !fits(field, field.placeholder)) wrong.push("the placeholder is cut off: " + field.placeholder);
  // Keys, networks and methods have names of any length.
  for (const field of document.querySelectorAll(".field select:not([name=key], [name=network], [name=method])"))
    for (const choice of field.options)
      if (field.checkVisibility() && !fits(field, choice.text)) wrong.push("the choice is cut off: " + choice.text);
  for (const code of document.querySelectorAll(".codes tbody th"))
    if (broken(code)) wrong.push("the code is broken into two lines: " + code.textContent);
  for (const cell of document.querySelectorAll(".types td"))
    if (cell.getBoundingClientRect().right > innerWidth) wrong.push("a description must be scrolled to: " + cell.textContent);
  const headings = document.querySelectorAll("h1").length;
  if (headings !== 1) wrong.push(headings + " headings of the first level");
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea"))
    if (field.labels.length === 0) wrong.push("the field " + field.name + " has no label");
  for (const button of document.querySelectorAll("button, a"))
    if (!button.textContent.trim()) wrong.push("a button or link without a text: " + button.outerHTML);
  const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
  for (const id of new Set(ids))
    if (ids.filter((other) => other === id).length > 1) wrong.push("the ID " + id + " is there more than once");
  for (const element of document.querySelectorAll("[aria-describedby], [aria-labelledby]"))
    for (const id of (element.getAttribute("aria-describedby") || element.getAttribute("aria-labelledby")).split(" "))
      if (!document.getElementById(id)) wrong.push("the ID " + id + " is not there");
  return wrong;
})()`

func at(path string) func(*tab) { return func(b *tab) { b.open(path) } }

// inKey opens the page of a key, or a page that it links to.
func inKey(more string) func(*tab) {
	return func(b *tab) {
		b.open("/keys")
		b.follow("tbody a[href^='/keys/']")
		if more != "" {
			b.follow("a[href$='" + more + "']")
		}
	}
}

// longEmail and longName have the maximum length of user input, and no place for a line break.
func longEmail() string {
	return strings.Repeat("a", 60) + "@" + strings.Repeat(strings.Repeat("b", 60)+".", 3) + "example"
}

func longName() string { return strings.Repeat("W", 100) }

// makeLong creates a key with a long name and long rules, and uses it.
func (b *tab) makeLong() {
	b.Helper()
	b.open("/keys/new")
	b.unfold()
	b.enter("#name", longName())
	b.enter("#methods", "eth_"+strings.Repeat("x", 96)) // the maximum length of a method
	b.enter("#origins", "https://"+strings.Repeat("o", 100)+".example.org")
	b.follow("main form button.primary")
	b.there("#api-key")
	b.open("/console?network=demo&method=eth_blockNumber")
	b.choose("#key", longName())
	b.follow("form[aria-labelledby=by-request] button.primary")
	b.there("#answer")
}

// unfold opens what is folded away on the page.
func (b *tab) unfold() {
	run(b, chromedp.Evaluate[bool]("document.querySelectorAll('main details').forEach((one) => { one.open = true; }) === undefined"))
}

// namedPages returns the pages that show a user's long names.
func namedPages() []shot {
	return []shot{
		{"long-overview", at("/")},
		{"long-account", at("/account")},
		{"long-account-delete", at("/account/delete")},
		{"long-keys", at("/keys")},
		{"long-key", inKey("")},
		{"long-key-rotate", inKey("/rotate")},
		{"long-key-revoke", inKey("/revoke")},
		{"long-key-issued", func(b *tab) {
			inKey("/rotate")(b)
			b.follow("main form button.primary")
			b.there("#api-key")
		}},
		{"long-key-wrong", func(b *tab) {
			inKey("")(b)
			b.enter("#contracts", strings.Repeat("0", 100))
			b.follow("main form button.primary")
			b.there("#contracts-error")
		}},
		{"long-usage", at("/usage")},
		{"long-console", at("/console")},
	}
}

func strangersPages() []shot {
	return []shot{
		{"home", at("/")},
		{"sign-in", at("/signin")},
		{"sign-in-wrong", func(b *tab) {
			b.open("/signin")
			b.enter("#email", "nobody@example.org")
			b.enter("#password", "not the password")
			b.follow("main form button.primary")
			b.there(".notice.bad")
		}},
		{"sign-up", at("/signup")},
		{"sign-up-over", at("/signup?invitation=0")},
		{"join-over", at("/teams/join?invitation=0")},
		{"docs", at("/docs")},
		{"docs-found", at("/docs?q=block")},
		{"docs-method", at("/docs/methods/eth_getLogs")},
		{"docs-method-starknet", at("/docs/methods/starknet_getBlockWithTxHashes")},
		{"docs-requests", at("/docs/requests")},
		{"docs-errors", at("/docs/errors")},
		{"docs-limits", at("/docs/limits")},
		{"status", at("/status")},
		{"reset", at("/reset")},
		{"reset-over", at("/reset?token=0")},
	}
}

func operatorsPages(password string) []shot {
	return []shot{
		{"overview", at("/")},
		{"menu", func(b *tab) {
			b.open("/keys")
			run(b, chromedp.Evaluate[bool]("document.querySelector('.menu').open = true"))
		}},
		{"keys", at("/keys")},
		{"key-new", at("/keys/new")},
		{"key-new-wrong", func(b *tab) {
			b.open("/keys/new")
			b.unfold()
			b.enter("#contracts", "0x12")
			b.enter("#origins", "example.org")
			b.follow("main form button.primary")
			b.there("#contracts-error")
		}},
		{"key", inKey("")},
		{"key-rotate", inKey("/rotate")},
		{"key-revoke", inKey("/revoke")},
		{"key-issued", func(b *tab) {
			inKey("/rotate")(b)
			b.follow("main form button.primary")
			b.there("#api-key")
		}},
		{"usage", at("/usage")},
		{"networks", at("/networks")},
		{"console", func(b *tab) {
			b.open("/console")
			b.follow("form[aria-labelledby=by-request] button.primary")
			b.there("#answer")
		}},
		{"console-form", at("/console?network=demo&method=eth_call")},
		{"console-error", func(b *tab) {
			b.open("/console?network=demo&method=eth_sendRawTransaction")
			b.follow("form[aria-labelledby=by-request] button.primary")
			b.sees("#answer", "All errors")
		}},
		{"console-live", func(b *tab) { b.live() }},
		{"account", at("/account")},
		{"account-delete", at("/account/delete")},
		{"passkeys-nowhere", at("/account/passkeys")}, // an IP address has none
		{"tokens", func(b *tab) {
			b.open("/account/tokens")
			b.enter("#name", "CI")
			b.enter("#password", password)
			b.follow("main form button.primary")
			b.there("#token, .notice.bad")
		}},
		{"token-revoke", func(b *tab) {
			b.open("/account/tokens")
			b.follow("a[aria-label^='Revoke ']")
		}},
		{"service", at("/service")},
		{"people", at("/people")},
		{"person", func(b *tab) {
			b.open("/people")
			b.follow("tbody a[href^='/people/']")
		}},
		{"person-delete", func(b *tab) {
			b.open("/people")
			b.follow("tbody tr:last-child a[href^='/people/']")
			b.follow("a[href$='/delete']")
			b.enter("#name", "somebody else")
			b.enter("#password", password)
			b.follow("main form button.danger")
			b.there("#name-error")
		}},
		{"person-long", func(b *tab) {
			b.open("/people")
			b.follow("tbody tr:last-child a[href^='/people/']")
			b.sees("h1", longEmail())
		}},
		{"invitations-long", func(b *tab) {
			b.open("/invitations")
			b.enter("#email", "c"+longEmail()[1:])
			b.follow("main form button.primary")
			b.there("#invitation-link")
		}},
		{"invitations", func(b *tab) {
			b.open("/invitations")
			b.follow("main form button.primary")
			b.there("#invitation-link")
		}},
		{"person-long-role", func(b *tab) {
			b.open("/people")
			b.follow("tbody tr:last-child a[href^='/people/']")
			b.pick("#role", "operator")
			b.follow("main form button[value=save]")
			b.there("#proof-password")
		}},
		{"limits", at("/limits")},
		{"audit", at("/audit")},
		{"not-found", at("/nothing")},
	}
}

// use makes requests, so that there is usage to show.
func (b *tab) use() {
	for _, path := range []string{
		"/console?network=demo&method=eth_getLogs", "/console?network=demo&method=eth_getProof",
		"/console?network=demo&method=eth_estimateGas", "/console?network=demo-starknet&method=rollup_getEvents",
	} {
		b.open(path)
		b.follow("form[aria-labelledby=by-parameters] button.primary")
		b.there("#answer")
	}
}
