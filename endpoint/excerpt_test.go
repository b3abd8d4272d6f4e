package endpoint

import (
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// An excerpt is short, and has no key of the URL, however it is written there.
func TestExcerpt(t *testing.T) {
	const most = 200
	for address, text := range map[string]string{
		"https://node.example/v3/0123456789abcdef":                 "Cannot POST /v3/0123456789abcdef",
		"https://node.example/v3/0123456789ab%20def":               "Cannot POST /v3/0123456789ab%20def or /v3/0123456789ab def",
		"https://node.example/rpc?apikey=0123456789abcdef":         "Cannot POST /rpc?apikey=0123456789abcdef",
		"https://node.example/rpc?apikey=0123456789abcdef&x=1":     "invalid key 0123456789abcdef",
		"https://name:0123456@node.example/":                       "wrong password 0123456",
		"https://0123456789abcdef@node.example/":                   "unknown project 0123456789abcdef",
		"https://node.example/0123456789abcdef/0123456789abcdef01": strings.Repeat("0123456789abcdef01", 1<<16),
		"https://node.example/" + strings.Repeat("0123456789", 9):  strings.Repeat("0123456789", 1<<16),
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if got := Excerpt(text, u, most); strings.Contains(got, "0123456") || !strings.Contains(got, "…") || len(got) > most+len("…") || !utf8.ValidString(got) {
			t.Errorf("%s: %q", address, got)
		}
	}
	u := &url.URL{Scheme: "https", Host: "node.example", Path: "/v3/mainnet"}
	if got, want := Excerpt("the network mainnet of /v3 is busy", u, most), "the network mainnet of /v3 is busy"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if got, want := Excerpt("unknown key 0123456789", u, most, "Bearer", "0123456789"), "unknown key …"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
	if got := Excerpt(strings.Repeat("é", 1000), nil, most); len(got) > most+len("…") || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}
