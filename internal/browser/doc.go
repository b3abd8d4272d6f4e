// Package browser tests the dashboard of a real service in a real browser: the complete path of a
// new user, with and without scripts; every page in light, dark and narrow; and every command line
// that pages offer for copying. It contains only tests.
//
// The tests need Chromium, found by its usual names or by ASHLAR_CHROMIUM; curl; and the tools of
// package clients. If ASHLAR_SCREENSHOTS names a folder by an absolute path, screenshots of the pages are
// written there while the tests run; go test -count=1 runs tests again that have passed before.
package browser
