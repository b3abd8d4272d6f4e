package site

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// FuzzLocal looks for texts that redirect a browser to another host.
func FuzzLocal(f *testing.F) {
	for _, to := range []string{"/keys", "//evil.test", `/\evil.test`, "/%2f/evil.test", "https:evil.test", "/.//evil.test", "/\t/evil.test", "/?next=//evil.test#@evil.test"} {
		f.Add(to)
	}
	base := &url.URL{Scheme: "https", Host: "dash.test", Path: "/signin"}
	f.Fuzz(func(t *testing.T, to string) {
		led := Local(to)
		// Browsers drop tabs and line ends, and treat a backslash as a slash.
		seen := strings.NewReplacer("\t", "", "\n", "", "\r", "", `\`, "/").Replace(led)
		u, err := base.Parse(seen)
		if err != nil || u.Host != base.Host || u.Scheme != base.Scheme || strings.HasPrefix(seen, "//") {
			t.Errorf("%q leads to %q, %v", to, led, err)
		}
	})
}

func TestLocalPaths(t *testing.T) {
	for to, want := range map[string]string{
		"": "/", "/keys": "/keys", "/usage?days=7&key=a": "/usage?days=7&key=a",
		"https://evil.test/": "/", "//evil.test": "/", `/\evil.test`: "/", `\\evil.test`: "/", "keys": "/", "javascript:alert(1)": "/",
		"/\n/evil.test": "/", "/\t/evil.test": "/", "http:/keys": "/", "/" + strings.Repeat("a", 1001): "/",
	} {
		if got := Local(to); got != want {
			t.Errorf("%q leads to %q, expected %q", to, got, want)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for _, c := range []struct{ request, network, want string }{
		{"http://127.0.0.1:8545/", "demo", "http://127.0.0.1:8545/demo/v3/K"},
		{"https://dash.example.org/", "demo", "https://dash.example.org/demo/v3/K"},
		{"https://dash.example.org/", "main", "https://main.example.org/v3/K"},
		{"http://[::1]:8545/", "demo", "http://[::1]:8545/demo/v3/K"},
		{"http://[::1]:8545/", "main", "http://main.example.org:8545/v3/K"},
		{"http://OTHER.example.org:81/", "main", "http://other.example.org:81/v3/K"},
	} {
		r, err := http.NewRequest(http.MethodGet, c.request, nil)
		if err != nil {
			t.Fatal(err)
		}
		n := Network{Name: c.network}
		if c.network == "main" {
			n.Hosts = []string{"main.example.org", "other.example.org"}
		}
		got := Endpoint(r, &n, "K")
		if socket := SocketEndpoint(got); socket != strings.Replace(strings.Replace(c.want, "http", "ws", 1), "/v3/", "/ws/v3/", 1) {
			t.Errorf("%s is %s by WebSocket", got, socket)
		}
		if got != c.want {
			t.Errorf("%s at %s is %s, expected %s", c.network, c.request, got, c.want)
		}
	}
}
