package browser

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// sideways returns the tables of a page that have to be scrolled to see all columns.
const sideways = `[...document.querySelectorAll(".card.flush")].filter((one) => one.scrollWidth > one.clientWidth)
  .map((one) => one.querySelector("caption").textContent + " is " + one.scrollWidth + " wide in " + one.clientWidth)`

// On tablets and in windows beside others, all columns of the tables can be seen.
func TestColumnsOnMediumScreens(t *testing.T) {
	t.Parallel()
	chromium(t)
	url, key := serveBusy(t, 80*24*time.Hour)
	b := openTab(t, url, true)
	b.signIn("busy@example.org", "a stone on a stone")
	for _, path := range []string{"/", "/keys", "/usage", "/service", "/people", "/audit", "/docs", "/docs/errors", "/docs/requests", "/docs/limits", "/account/tokens", "/teams", "/limits", "/invitations", "/keys/" + key.String() + "/failures"} {
		b.open(path)
		for _, width := range []int64{1440, 1100, 900, 800, 700, 375} {
			b.do(chromedp.EmulateViewport(width, 900))
			if found := run(b, chromedp.Evaluate[[]string](sideways)); len(found) > 0 {
				t.Errorf("%s on a screen of %d: %q", path, width, found)
			}
		}
	}
}

// Long names and e-mail addresses are wrapped instead.
func TestColumnsWithLongNames(t *testing.T) {
	t.Parallel()
	chromium(t)
	s := serve(t)
	named := openTab(t, s.url, true)
	named.signUp(longEmail(), "a stone on a stone")
	named.makeLong()
	b := openTab(t, s.url, true)
	b.signIn(s.operator, s.password)
	for tab, paths := range map[*tab][]string{named: {"/", "/keys", "/usage"}, b: {"/people", "/audit", "/service"}} {
		for _, path := range paths {
			tab.open(path)
			for _, width := range []int64{1440, 1280, 1100, 900, 700, 375} {
				tab.do(chromedp.EmulateViewport(width, 900))
				if found := run(tab, chromedp.Evaluate[[]string](sideways)); len(found) > 0 {
					t.Errorf("%s on a screen of %d: %q", path, width, found)
				}
			}
		}
	}
}

// outside returns the labels of charts that reach over the edges of the card around them.
const outside = `[...document.querySelectorAll(".chart text")].filter((one) => {
    const box = one.getBoundingClientRect(), card = one.closest(".card").getBoundingClientRect()
    return box.width > 0 && (box.left < card.left + 1 || box.right > card.right - 1)
  }).map((one) => one.closest(".card").querySelector("h2").textContent + ": " + one.textContent)`

// The labels of charts stay within their cards, whose borders they would cross otherwise.
func TestLabelsOfChartsFit(t *testing.T) {
	t.Parallel()
	chromium(t)
	url, _ := serveBusy(t, 80*24*time.Hour)
	b := openTab(t, url, true)
	b.signIn("busy@example.org", "a stone on a stone")
	for _, path := range []string{"/", "/usage", "/service"} {
		b.open(path)
		for _, width := range []int64{1440, 1100, 700, 640, 560, 480, 430, 375, 320} {
			b.do(chromedp.EmulateViewport(width, 900))
			if found := run(b, chromedp.Evaluate[[]string](outside)); len(found) > 0 {
				t.Errorf("%s on a screen of %d: %q", path, width, found)
			}
		}
	}
}
