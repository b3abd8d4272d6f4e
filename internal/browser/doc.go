// Package browser holds the dashboard against a real browser and a real service: the
// whole way of a new person, with scripts and without, every page in light, dark and
// narrow, and every line that pages show to be pasted. It has no code, only tests.
//
// They need Chromium, found by its usual names or named by ASHLAR_CHROMIUM, curl, and
// the tools of package clients. Where ASHLAR_SCREENSHOTS names a folder, a picture of
// every page is written into it.
package browser
