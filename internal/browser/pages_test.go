package browser

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"ashlar/account"
	"ashlar/account/failures"
	"ashlar/account/oidc"
	"ashlar/account/password"
	"ashlar/account/session"
	"ashlar/account/usage"
	"ashlar/dashboard"
	"ashlar/dashboard/site"
	"ashlar/jsonrpc"
	"ashlar/kv/pebble"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// busy is the usage of a busy account: calls with a daily rhythm, and failures of all kinds.
type busy struct {
	keys  []account.KeyID
	since time.Duration // how long ago the first call was
}

// Read implements site.Usage.
func (b *busy) Read(_ context.Context, q usage.Query) (lines []usage.Line, err error) {
	step := 24 * time.Hour
	switch {
	case q.By&usage.ByMinute != 0:
		step = time.Minute
	case q.By&usage.ByHour != 0:
		step = time.Hour
	}
	for at := q.From.Truncate(step); at.Before(q.To); at = at.Add(step) {
		if time.Since(at.Add(step)) > b.since {
			continue
		}
		for k, key := range b.keys {
			if !q.All && !slices.Contains(q.Keys, key) {
				continue
			}
			for m, method := range []string{"eth_call", "eth_getLogs", "eth_getTransactionReceipt", "eth_blockNumber", ""} {
				lines = append(lines, usage.Line{Time: at, Key: key, Network: []string{"mainnet", "sepolia"}[m%2], Method: method, Counts: counts(at, step, k, m)})
			}
		}
	}
	return lines, nil
}

func counts(at time.Time, step time.Duration, key, method int) usage.Counts {
	wave := 2 + math.Sin(float64(at.Unix())/86400*2*math.Pi) + .4*math.Sin(float64(at.Unix())/5000+float64(method))
	n := uint64(step.Minutes() * wave * 60 / float64(1+key+method))
	c := usage.Counts{Requests: n, Credits: n * 20, Bytes: n * 2100, Time: time.Duration(n) * 3 * time.Millisecond}
	rest := n
	for i, share := range [usage.Buckets]float64{.05, .15, 0, .25, .12, .05, .02, .01, .005, .003, .002} {
		c.Latency[i] = uint64(float64(n) * share * (.5 + wave*float64(i)/30))
		rest -= c.Latency[i]
	}
	c.Latency[2] = rest
	if at.Unix()/int64(step.Seconds())%3 == 0 {
		c.Refused = map[usage.Cause]uint64{usage.Rate: n / 30, usage.Quota: n / 90, usage.Origin: n / 80, usage.Method: n / 200}
		c.Codes = map[int]uint64{-32000: n / 40, 3: n / 25, -32602: n / 100, -32601: n / 300}
	}
	for _, n := range c.Refused {
		c.Errors += n
	}
	for _, n := range c.Codes {
		c.Errors += n
	}
	return c
}

// LastUsed implements site.Usage.
func (b *busy) LastUsed(context.Context, account.KeyID) (time.Time, error) {
	if b.since == 0 {
		return time.Time{}, nil
	}
	return time.Now().Add(-3 * time.Minute), nil
}

// serveBusy serves the dashboard of an account with two keys and a history of usage.
func serveBusy(t *testing.T, since time.Duration) (url string, key account.KeyID) {
	t.Helper()
	store, err := pebble.Open(pebble.Options{Path: "accounts", FS: vfs.NewMem()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	accounts, err := account.OpenAccounts(t.Context(), store, account.Config{Password: password.Params{MemoryKiB: 8, Passes: 1, Lanes: 1}})
	if err != nil {
		t.Fatal(err)
	}
	keys, err := account.OpenKeyring(t.Context(), accounts)
	if err != nil {
		t.Fatal(err)
	}
	token, a, err := accounts.Create(t.Context(), account.NewAccount{Email: "busy@example.org", Role: account.RoleOperator})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := accounts.SetPassword(t.Context(), token, "a stone on a stone", netip.Addr{}); err != nil {
		t.Fatal(err)
	}
	used, failed := &busy{since: since}, failures.New()
	for _, k := range []account.NewKey{
		{Name: "Web shop"}, {Name: "Indexer", Rules: account.Rules{PerSecond: 200, Networks: []string{"mainnet"}, Methods: []string{"eth_*"}}},
	} {
		issued, err := keys.Of(a.ID).Create(t.Context(), k)
		if err != nil {
			t.Fatal(err)
		}
		used.keys = append(used.keys, issued.Key.ID)
	}
	key = used.keys[0]
	failed.KeepParams(key, true)
	for range 4 {
		failed.Add(key, failures.Failure{Network: "mainnet", Method: "eth_call", Code: 3, Message: "execution reverted: ERC20: transfer amount exceeds balance", Took: 2300 * time.Microsecond}, []byte(`[{"to":"0xdac17f958d2ee523a2206206994597c13d831ec7","data":"0x70a08231"},"latest"]`))
		failed.Add(key, failures.Failure{Network: "mainnet", Code: -32002, Message: "origin not allowed: the key's rules do not list it", Cause: usage.Origin, Origin: "https://staging.example.org"}, nil)
		failed.Add(key, failures.Failure{Network: "sepolia", Method: "eth_getLogs", Code: -32005, Message: "daily quota exceeded", Cause: usage.Quota, Took: 40 * time.Microsecond}, nil)
	}
	pages, err := dashboard.New(site.Config{
		Accounts: accounts, Keys: keys, Sessions: session.NewStore(store, nil), Usage: used, Failures: failed,
		Networks: func(context.Context) ([]site.Network, error) { return busyNetworks(), nil },
		Unserved: func(context.Context) []site.Unserved {
			return []site.Unserved{{Name: "hoodi", Why: "open store in data/networks/hoodi: a file of it is damaged; `ashlar restore` brings it back from a backup", Missed: true}}
		},
		Limits: func() []site.LimitGroup { return nil },
		Allowance: func(k *account.Key) account.Allowance {
			share := float64(k.ID[0]) / 256
			return account.Allowance{
				PerSecond: []account.Bound{{Source: account.KeyDefault, Credits: 100, Used: 12}, {Source: account.AddressDefault, Credits: 40_000}},
				PerDay:    []account.Bound{{Source: account.KeyDefault, Credits: 3000, Used: math.Round(3000 * share)}, {Source: account.AccountDefault, Credits: 10_000, Used: 4160}},
			}
		},
		Call:   func(context.Context, site.Call, func(site.Answer)) {},
		Status: func() bool { return false },
		Events: busyEvents,
		// It answers for its endpoints only; package dashboard is tested with a real one.
		Provider: oidc.New(oidc.Config{Issuer: provider(t), Client: "ashlar", Name: "Example"}),
		Log:      slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	return server.URL, key
}

// provider serves the description of an OpenID Connect provider, and returns its URL.
func provider(t *testing.T) string {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	issuer := "http://" + server.Listener.Addr().String()
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"issuer":%q,"authorization_endpoint":%q,"token_endpoint":%q,"jwks_uri":%q}`, issuer, issuer+"/auth", issuer+"/token", issuer+"/keys")
	})
	server.Start()
	t.Cleanup(server.Close)
	return issuer
}

// busyEvents returns events of each kind and of the greatest length.
func busyEvents(network string) (all []site.Event) {
	switch network {
	case "":
		return []site.Event{{Time: time.Now(), Text: "certificates: using a renewed certificate (file /etc/ashlar/rpc.example.org.pem)"}}
	case "sepolia":
		return nil
	}
	for i := range 5 {
		at := time.Now().Add(-time.Duration(i) * 37 * time.Minute)
		all = append(all,
			site.Event{Time: at, Text: "reorganization (depth 2, from 21000000, hash 0x0b5ee1b4b3d2a6c84bb1c1c0b1c4b4e9d1f0a7c6d5e4f3a2b1c0d9e8f7a6b5c4, to 21000001, its 0x4c5b6a7f8e9d0c1b2a3f4e5d6c7a0f1d9e4b4c1b0c1c1bb48c6a2d3b4b1ee5b0)"},
			site.Event{Time: at.Add(-time.Minute), Level: slog.LevelWarn, Text: "the node is not used (upstream https://node-1.example.org): its head is 14 blocks behind"},
			site.Event{Time: at.Add(-time.Hour), Level: slog.LevelError, Text: "cannot settle blocks: trying again: " + strings.Repeat("x", 300)})
	}
	return all
}

func busyNetworks() (all []site.Network) {
	for _, name := range []string{"mainnet", "sepolia"} {
		all = append(all, site.Network{
			Name: name, Family: "evm", Chain: "1", Head: 21_000_000, HeadTime: time.Now(), HeadResult: `"0x1406f40"`,
			Methods: []site.Method{priced("eth_blockNumber", 1), priced("eth_call", 20), priced("eth_getLogs", 50)},
			Snippets: func(url, _ string) []site.Snippet {
				return []site.Snippet{{Tool: "curl", Text: "curl " + url}}
			},
		})
	}
	late := &all[1]
	late.Name, late.Follows, late.Behind, late.Rate, late.Remaining = strings.Repeat("n", 64), true, 123_456_789, 1234, 99*time.Hour
	late.Head = 123_456_789_012
	return all
}

func priced(name string, credits int) site.Method {
	return site.Method{Method: &jsonrpc.Method{Name: name}, Credits: credits}
}

// The pages about limits, usage and failures fit every screen, with much usage, with a single
// call and with none.
func TestPagesOfBusyAccounts(t *testing.T) {
	t.Parallel()
	chromium(t)
	folder := screenshots(t)
	for name, since := range map[string]time.Duration{"busy": 80 * 24 * time.Hour, "first-hour": 3 * time.Minute, "unused": 0} {
		t.Run(name, func(t *testing.T) {
			url, key := serveBusy(t, since)
			b := openTab(t, url, true)
			b.signIn("busy@example.org", "a stone on a stone")
			shots := []shot{{"overview", at("/")}, {"usage", at("/usage")}}
			if name == "busy" {
				shots = append(shots, shot{"keys", at("/keys")}, shot{"key", at("/keys/" + key.String())}, shot{"account", at("/account")},
					shot{"usage-hour", at("/usage?time=hour&key=" + key.String())}, shot{"service", at("/service")}, shot{"networks", at("/networks")},
					shot{"failures", at("/keys/" + key.String() + "/failures")})
			}
			for _, one := range shots {
				b.lookAt(shot{name + "-" + one.name, one.open}, folder)
			}
			if name == "busy" {
				b.readNumbers()
			}
		})
	}
}

// readNumbers reads the numbers of a chart with the keyboard and by touch.
func (b *tab) readNumbers() {
	b.Helper()
	b.open("/?time=7")
	b.do(chromedp.Focus(chromedp.CSS(".plot")), chromedp.KeyEvent(kb.ArrowLeft)) // the last position
	today := time.Now().UTC().Format("2 Jan")
	b.sees(".tip", today)
	b.sees("#said", today+", answered")
	b.do(chromedp.KeyEvent(kb.Escape))
	if hidden := run(b, chromedp.Evaluate[bool]("document.querySelector('.tip').hidden")); !hidden {
		b.Error("Escape does not hide the numbers")
	}
	touch := `(() => {
	  const bar = document.querySelectorAll(".plot")[1].querySelectorAll(".bar")[2], box = bar.getBoundingClientRect();
	  bar.dispatchEvent(new PointerEvent("pointerdown", { bubbles: true, pointerType: "touch", clientX: box.left + box.width / 2, clientY: box.top + 5 }));
	  return document.querySelectorAll(".tip")[1].textContent;
	})()`
	if text := run(b, chromedp.Evaluate[string](touch)); len(text) < 10 {
		b.Errorf("touching a chart shows %q", text)
	}
}
