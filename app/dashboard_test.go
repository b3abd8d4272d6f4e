package app

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/app/config"
	"ashlar/gateway"
)

// at asks for a page by a host's name.
func at(t *testing.T, s *Service, host string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.server.Addr().String()+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Host = host
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// The dashboard is shown at its hosts alone, which can be changed while serving.
func TestDashboardsHosts(t *testing.T) {
	s, _ := served(t, nil)
	expect := func(host string, shown bool) {
		t.Helper()
		status, body := at(t, s, host)
		if is := status == http.StatusOK && strings.Contains(body, "<title>"); is != shown || !is && status != http.StatusNotFound {
			t.Errorf("%s: %d, shows the dashboard: %t, expected %t", host, status, is, shown)
		}
	}
	expect("localhost:8545", true)
	expect("127.0.0.1", true)
	expect("dash.example.org", false)
	changed := s.config
	changed.Dashboard.Hosts = []string{"dash.example.org"}
	if err := s.Reload(changed); err != nil {
		t.Fatal(err)
	}
	expect("localhost", false)
	expect("DASH.example.org:443", true)
}

// signIn creates an operator, and returns a browser that is signed in, and where the dashboard is.
func signIn(t *testing.T, s *Service) (browser *http.Client, base string) {
	t.Helper()
	token, _, err := s.accounts.Create(t.Context(), account.NewAccount{Email: "a@example.org", Role: account.RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser, base = &http.Client{Jar: jar}, "http://"+s.server.Addr().String()
	response, err := browser.PostForm(base+"/reset", url.Values{"token": {token}, "password": {"a stone on a stone"}})
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), "Your password was set.") {
		t.Fatalf("sign in: %d, %v, %s", response.StatusCode, err, text)
	}
	return browser, base
}

// An operator signs in, asks in the console, and sees that counted and all limits.
func TestDashboardIsWired(t *testing.T) {
	s, _ := served(t, func(c *config.Config) {
		c.Networks = map[string]config.Network{"demo": {Hosts: []string{"demo.example.org"}}}
		c.Limits.KeyRate = 12.5
	})
	browser, base := signIn(t, s)
	see := func(response *http.Response, err error, wants ...string) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if response.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
				t.Errorf("%s: %d, expected %q in\n%s", response.Request.URL.Path, response.StatusCode, want, text)
			}
		}
	}
	response, err := browser.PostForm(base+"/console", url.Values{"network": {"demo"}, "request": {blockNumber}})
	see(response, err, "HTTP 200", "&#34;result&#34;: &#34;0x0&#34;")
	for path, want := range map[string]string{
		"/usage": "1 call, 0 % failed; 1 credit;", "/service": "eth_<wbr>blockNumber", "/limits": "12.5", "/networks": "http://demo.example.org:", "/people": "a@example.org",
	} {
		response, err = browser.Get(base + path)
		see(response, err, want)
	}
}

// TestPagesOfTheRest: a network whose status cannot be read is shown with the reason, to operators,
// and every page shows the others.
func TestPagesOfTheRest(t *testing.T) {
	s, _ := served(t, nil)
	defer addUnreadable(s)()
	shown, err := s.shownNetworks(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(shown) != 2 || shown[0].Unreadable != "no node answers" || shown[1].Unreadable != "" || shown[1].Chain == "" {
		t.Fatalf("%+v", shown)
	}
	if state, mood := shown[0].State(); state != "cannot be read" || mood != "bad" {
		t.Errorf("its state is %s, %s", state, mood)
	}
	if status, home := get(t, "http://"+s.server.Addr().String()+"/"); status != http.StatusOK || !strings.Contains(home, "cannot be read") || strings.Contains(home, "&#34;result&#34;:") {
		t.Errorf("the home page: %d, %s", status, home)
	}
	browser, base := signIn(t, s)
	for path, want := range map[string]string{
		"/networks": "The state of this network cannot be read: no node answers", "/": "Overview", "/keys/new": "broken", "/console": "broken", "/docs": "broken",
	} {
		response, err := browser.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), want) {
			t.Errorf("%s: %d, %v, expected %q in\n%s", path, response.StatusCode, err, want, text)
		}
	}
}

// Scripts reach the API for keys through the gateway, which takes other JSON for JSON-RPC.
func TestAPIIsWired(t *testing.T) {
	s, _ := served(t, nil)
	_, made, err := s.accounts.Create(t.Context(), account.NewAccount{Email: "a@example.org"})
	if err != nil {
		t.Fatal(err)
	}
	token, _, err := s.accounts.CreateToken(t.Context(), made.ID, "CI", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.server.Addr().String()+"/api/v1/keys", strings.NewReader(`{"name":"first"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if keys, err := s.keys.Of(made.ID).List(t.Context()); response.StatusCode != http.StatusCreated || err != nil || len(keys) != 1 {
		t.Errorf("%s, keys %+v, %v", response.Status, keys, err)
	}
}

// Each limit that operators see is an entry of the configuration.
func TestShownLimitsAreEntries(t *testing.T) {
	c := config.Default()
	for _, group := range shownLimits(&c, gateway.Stats{}) {
		for _, limit := range group.Limits {
			if !isEntry(reflect.TypeOf(c), limit.Entry) || limit.Most == "" || limit.Meaning == "" {
				t.Errorf("%s: %+v", group.Title, limit)
			}
		}
	}
}

// isEntry reports whether a path names an entry of a type.
func isEntry(of reflect.Type, path string) bool {
	name, rest, more := strings.Cut(path, ".")
	for i := range of.NumField() {
		if field := of.Field(i); field.Tag.Get("yaml") == name {
			return !more || isEntry(field.Type, rest)
		}
	}
	return false
}
