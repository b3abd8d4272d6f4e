package account

import (
	"strings"
	"testing"
)

// An origin that browsers never send would refuse every page, so it is rejected, and the error names the origin
// that they send.
func TestOriginsThatBrowsersSend(t *testing.T) {
	for _, origin := range []string{
		"https://app.example.org", "http://localhost:3000", "https://a.test:8443", "http://127.0.0.1:5173", "http://[::1]:8080", "http://[::ffff:102:304]",
		"https://xn--bcher-kva.example", "https://a_b.test", "https://a.test.", "chrome-extension://abcdefghijklmnop", "capacitor://localhost",
	} {
		if err := (&Rules{Origins: []string{origin}}).CheckChange(nil); err != nil {
			t.Errorf("%s: %v", origin, err)
		}
	}
	for origin, want := range map[string]string{
		"https://app.example.org/":       "(want https://app.example.org)",
		"https://app.example.org/wallet": "(want https://app.example.org)",
		"https://app.example.org?a=b":    "(want https://app.example.org)",
		"https://app.example.org#a":      "(want https://app.example.org)",
		"https://me@app.example.org":     "(want https://app.example.org)",
		"https://App.Example.org":        "(want https://app.example.org)",
		"HTTPS://app.example.org":        "(want https://app.example.org)",
		"https://app.example.org:443":    "(want https://app.example.org)",
		"http://app.example.org:80":      "(want http://app.example.org)",
		"https://app.example.org:":       "(want https://app.example.org)",
		"https://app.example.org:08443":  "(want https://app.example.org:8443)",
		"http://[0::1]:8080":             "(want http://[::1]:8080)",
		"http://[::ffff:1.2.3.4]":        "(want http://[::ffff:102:304])",
		"https://*.example.org":          "* stands for nothing here",
		"https://bücher.example":         "xn--",
		"http://127.1:3000":              "browsers send another host",
		"https://a.test:99999":           "browsers send another host or port",
		"https://a%2eb.test":             "invalid origin",
		"*":                              "want one such as https://app.example.org",
		"null":                           "want one such as https://app.example.org",
		"app.example.org":                "want one such as https://app.example.org",
		"//app.example.org":              "want one such as https://app.example.org",
	} {
		if err := (&Rules{Origins: []string{origin}}).CheckChange(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", origin, err, want)
		}
	}
}

// Rules that were stored before new ones were checked in full can still be read.
func TestStoredOriginsAreRead(t *testing.T) {
	if err := (&Rules{Origins: []string{"https://App.example.org:443"}}).Check(); err != nil {
		t.Error(err)
	}
}
