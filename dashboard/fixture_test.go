package dashboard

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/failures"
	"ashlar/account/password"
	"ashlar/account/session"
	"ashlar/account/usage"
	"ashlar/dashboard/site"
	evm "ashlar/evm/network"
	"ashlar/family"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
	"ashlar/kv/pebble"
	starknet "ashlar/starknet/network"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// service is a dashboard served for a test.
type service struct {
	t         *testing.T
	url       string
	handler   http.Handler
	accounts  *account.Accounts
	keys      *account.Keyring
	called    []site.Call     // by the console
	answer    site.Answer     // to those calls
	more      []site.Method   // of mainnet
	public    bool            // the status page
	upstreams []site.Upstream // of mainnet
	stored    site.Store      // of mainnet
	events    map[string][]site.Event
	lines     []usage.Line
	failed    *failures.Log
	lastUsed  time.Time
	used      float64 // credits of each key today, for its limits
	unserved  []site.Unserved
	broken    error                     // error of reading the networks, or nil
	stopped   atomic.Pointer[time.Time] // what the clock of the accounts shows; nil: it goes
	close     func()
}

// made is the time of the test networks' blocks.
var made = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func (s *service) served(context.Context) ([]site.Network, error) {
	all := []site.Network{
		{Name: "mainnet", Family: "evm", Chain: "1", Methods: []site.Method{tried("eth_blockNumber"), tried("eth_getBlockByNumber", "0x12d687", false)}, Head: 1234567, HeadTime: made, First: 1000000, FirstState: 1200000, FirstProof: 1230000, Settled: 1234500, Disk: 5 << 30, Follows: true},
		{Name: "starknet", Family: "starknet", Chain: "SN_MAIN", Methods: []site.Method{tried("starknet_blockNumber")}, Head: 42, HeadTime: made, Hosts: []string{"starknet.test"}, Problem: "the node does not answer", Warning: "the fork X is scheduled"},
	}
	for i, f := range []family.Family{evm.Family{}, starknet.Family{}} {
		presented := f.Presentation()
		all[i].History, all[i].HeadResult = presented.History, presented.HeadResult(all[i].Head)
		all[i].Programs = func(url, password, method string, params json.RawMessage) (all []site.Snippet) {
			for _, s := range presented.Programs(url, password, method, params) {
				all = append(all, site.Snippet(s))
			}
			return all
		}
		all[i].Snippets = func(url, password string) (all []site.Snippet) {
			for _, s := range presented.Snippets(url, password) {
				all = append(all, site.Snippet(s))
			}
			return all
		}
	}
	all[0].Upstreams, all[0].Store = s.upstreams, s.stored
	all[0].Methods = append(all[0].Methods, s.more...)
	return all, s.broken
}

// Read implements Usage.
func (s *service) Read(_ context.Context, q usage.Query) (found []usage.Line, err error) {
	for _, l := range s.lines {
		if (q.All || slices.Contains(q.Keys, l.Key)) && !l.Time.Before(q.From) && l.Time.Before(q.To) {
			found = append(found, l)
		}
	}
	return found, nil
}

// allowed returns the limits of a key, whose rules may lower them.
func (s *service) allowed(k *account.Key) account.Allowance {
	second, today := account.Bound{Source: account.KeyDefault, Credits: 100}, account.Bound{Source: account.KeyDefault, Credits: 3000, Used: s.used}
	if r := k.Rules; r != nil && r.PerSecond > 0 {
		second = account.Bound{Source: account.KeyRule, Credits: float64(r.PerSecond)}
	}
	if of := k.Account(); of != nil && of.Limits.PerSecond > 0 {
		return account.Allowance{PerSecond: []account.Bound{{Source: account.AccountLimit, Credits: float64(of.Limits.PerSecond)}}}
	}
	all := account.Bound{Source: account.AccountDefault, Credits: 5000, Used: s.used}
	return account.Allowance{PerSecond: []account.Bound{second}, PerDay: []account.Bound{today, all}}
}

// LastUsed implements Usage.
func (s *service) LastUsed(context.Context, account.KeyID) (time.Time, error) {
	if s.lastUsed.IsZero() && len(s.lines) > 0 {
		return made, nil
	}
	return s.lastUsed, nil
}

// clock is the time of the accounts.
func (s *service) clock() time.Time {
	if at := s.stopped.Load(); at != nil {
		return *at
	}
	return time.Now()
}

// stopClock stops the clock of the accounts: no attempt and no change that was used up comes back.
func (s *service) stopClock() {
	now := time.Now()
	s.stopped.Store(&now)
}

func serve(t *testing.T, registration account.Registration) *service {
	t.Helper()
	return serveWith(t, registration, func(string, *site.Config) {})
}

// serveWith is serve with a configuration that is changed before, given the dashboard's URL.
func serveWith(t *testing.T, registration account.Registration, change func(url string, c *site.Config)) *service {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	store, err := pebble.Open(pebble.Options{Path: "accounts", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{t: t, failed: failures.New(), answer: site.Answer{Status: 200, Body: []byte(`{"jsonrpc":"2.0","id":1,"result":"0x1"}`)}}
	quick := password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1}
	if s.accounts, err = account.OpenAccounts(t.Context(), store, account.Config{Registration: registration, Password: quick, Teams: account.DefaultTeams, Now: s.clock}); err != nil {
		t.Fatal(err)
	}
	if s.keys, err = account.OpenKeyring(t.Context(), s.accounts); err != nil {
		t.Fatal(err)
	}
	config := site.Config{
		Accounts: s.accounts, Keys: s.keys, Sessions: session.NewStore(store, nil), Usage: s, Failures: s.failed, Networks: s.served,
		Unserved: func(context.Context) []site.Unserved { return s.unserved },
		Status:   func() bool { return s.public },
		Events:   func(network string) []site.Event { return s.events[network] },
		Limits: func() []site.LimitGroup {
			return []site.LimitGroup{
				{Title: "Of one client", Public: true, Limits: []site.Limit{{Entry: "limits.account_daily", Meaning: "credits per day", Most: "3,000", Now: "12 running"}}},
				{Title: "Of all", Limits: []site.Limit{{Entry: "limits.memory", Meaning: "only for operators", Most: "1 GiB"}}},
			}
		},
		Allowance: func(k *account.Key) account.Allowance { return s.allowed(k) },
		Call: func(_ context.Context, c site.Call, read func(site.Answer)) {
			s.called = append(s.called, c)
			read(s.answer)
		},
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	change("http://"+server.Listener.Addr().String(), &config)
	if s.handler, err = New(config); err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = s.handler
	server.Start()
	s.url = server.URL
	s.close = func() {
		server.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { s.close() })
	return s
}

// browser sends requests with cookies. It does not follow redirects.
type browser struct {
	s      *service
	client *http.Client
}

func (s *service) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return &browser{s, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// page is an answer.
type page struct {
	status int
	header http.Header
	body   string
}

func (b *browser) do(request *http.Request) page {
	b.s.t.Helper()
	response, err := b.client.Do(request)
	if err != nil {
		b.s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		b.s.t.Fatal(err)
	}
	return page{response.StatusCode, response.Header, string(body)}
}

func (b *browser) get(path string) page {
	b.s.t.Helper()
	request, err := http.NewRequest(http.MethodGet, b.s.url+path, nil)
	if err != nil {
		b.s.t.Fatal(err)
	}
	return b.do(request)
}

// post sends a form as a page of the dashboard does. Headers are name-value pairs.
func (b *browser) post(path string, values url.Values, headers ...string) page {
	b.s.t.Helper()
	request, err := http.NewRequest(http.MethodPost, b.s.url+path, strings.NewReader(values.Encode()))
	if err != nil {
		b.s.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	return b.do(request)
}

const goodPassword = "correct horse battery"

// newUser returns a browser that is signed in with a new account.
func (s *service) newUser(email string, role account.Role) (*browser, account.Account) {
	s.t.Helper()
	token, a, err := s.accounts.Create(s.t.Context(), account.NewAccount{Email: email, Role: role})
	if err != nil {
		s.t.Fatal(err)
	}
	if _, _, err := s.accounts.SetPassword(s.t.Context(), token, goodPassword, netip.Addr{}); err != nil {
		s.t.Fatal(err)
	}
	b := s.browser()
	if p := b.post("/signin", url.Values{"email": {email}, "password": {goodPassword}}); p.status != http.StatusSeeOther {
		s.t.Fatalf("signing in: %d %s", p.status, p.body)
	}
	return b, a
}

// leads fails the test if the answer is not a redirect to a path.
func (p page) leads(t *testing.T, to string) {
	t.Helper()
	if p.status != http.StatusSeeOther || p.header.Get("Location") != to {
		t.Errorf("%d to %q, expected %d to %q\n%s", p.status, p.header.Get("Location"), http.StatusSeeOther, to, p.text())
	}
}

// says fails the test if a page does not have the status and the texts.
func (p page) says(t *testing.T, status int, texts ...string) {
	t.Helper()
	if p.status != status {
		t.Fatalf("status %d, expected %d\n%s", p.status, status, p.text())
	}
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			t.Errorf("%q is not in the page:\n%s", text, p.text())
		}
	}
}

var (
	inputs = regexp.MustCompile(`<input [^>]*name="([^"]+)"[^>]* value="([^"]*)"( checked)?[^>]*>`)
	areas  = regexp.MustCompile(`(?s)<textarea [^>]*name="([^"]+)"[^>]*>\n(.*?)</textarea>`)
)

// typed returns the values a browser would send for a page's forms, with one field changed.
func (p page) typed(name, value string) url.Values {
	sent := url.Values{}
	for _, one := range inputs.FindAllStringSubmatch(p.body, -1) {
		if !strings.Contains(one[0], `type="checkbox"`) || one[3] != "" {
			sent.Add(one[1], html.UnescapeString(one[2]))
		}
	}
	for _, one := range areas.FindAllStringSubmatch(p.body, -1) {
		sent.Add(one[1], html.UnescapeString(one[2]))
	}
	sent.Set(name, value)
	return sent
}

var tags = regexp.MustCompile(`(?s)<head>.*</head>|<[^>]*>`)

// text returns a page without tags, for messages.
func (p page) text() string {
	return strings.Join(strings.Fields(tags.ReplaceAllString(p.body, " ")), " ")
}

// tried returns a method whose parameters have examples.
func tried(name string, examples ...any) site.Method {
	m := &jsonrpc.Method{Name: name, Summary: "Returns what " + name + " returns.", Result: jsonrpc.Result{Name: "Outcome", Schema: schema.String}}
	for i, example := range examples {
		m.Params = append(m.Params, jsonrpc.Param{Name: fmt.Sprintf("Param %d", i), Summary: "What is wanted.", Required: true, Schema: schema.Any, Example: jsonrpc.Given(example)})
	}
	credits := 1
	if len(examples) > 0 {
		credits = 20
	}
	return site.Method{Method: m, Credits: credits}
}
