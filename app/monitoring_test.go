package app

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"ashlar/app/backup"
	"ashlar/app/config"
	"ashlar/app/store"
	"ashlar/internal/vectors"
)

func promtool(t *testing.T) string {
	t.Helper()
	bin := os.Getenv("ASHLAR_PROMTOOL")
	if bin == "" {
		bin, _ = exec.LookPath("promtool")
	}
	if bin == "" {
		vectors.Missing(t, "needs promtool: put it on PATH or name it in ASHLAR_PROMTOOL (Debian's package prometheus has it)")
	}
	return bin
}

// liveMetrics returns /metrics of a server that has a network with upstream nodes, one with
// a consensus client, one with a light client, and a certificate, after a backup and calls with
// and without success.
func liveMetrics(t *testing.T) string {
	t.Helper()
	data := t.TempDir()
	f := Families().Default()
	demo, err := f.Demo()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"followed", "driven"} {
		place, err := Place(t.Context(), store.Dir(data), f, name)
		if err == nil {
			err = demo.Create(t.Context(), place, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	certificates := t.TempDir()
	trusted := writeCertificate(t, certificates)
	file := filepath.Join(data, ".ashlar.yaml")
	text := fmt.Sprintf(`
data: %s
listen: 127.0.0.1:0
operator: 127.0.0.1:0
tls: {certificate: %s, key: %s}
networks:
  followed: {source: "http://127.0.0.1:1"}
  driven: {engine: {listen: "127.0.0.1:0"}}
  proven:
    upstream: "http://127.0.0.1:1"
    check: state
    genesis: sepolia
    light_client: {nodes: "http://127.0.0.1:1", checkpoint: "0x%064x"}
`, data, filepath.Join(certificates, "a.pem"), filepath.Join(certificates, "a.key"), 1)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, Families())
	if err != nil {
		t.Fatal(err)
	}
	s, apiKey, stop := running(t, c)
	defer stop()
	target, err := backup.OpenTarget(t.TempDir())
	if err == nil {
		err = backup.RecordOutcome(data, target, []string{store.AccountsName}, new(backup.Made), false)
	}
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	for _, body := range []string{blockNumber, `{"jsonrpc":"2.0","id":1,"method":"eth_call","params":[1]}`, `{"jsonrpc":"2.0","id":1,"method":"x_y"}`} {
		response, err := client.Post("https://"+s.Addr().String()+"/followed/v3/"+apiKey, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	_, metrics := get(t, "http://"+s.operator.listener.Addr().String()+"/metrics")
	if strings.Contains(metrics, apiKey) {
		t.Error("the metrics have a key")
	}
	return metrics
}

// TestMonitoring checks the metrics, the alerts and the dashboard in deploy: promtool finds
// nothing to improve in the metrics, and each metric of a query is one that a server has.
func TestMonitoring(t *testing.T) {
	metrics := liveMetrics(t)
	has := map[string]bool{"up": true, "ashlar_store_keeps_rows": true} // the latter of readers of a cluster: TestKeptRowsMetric
	for _, line := range strings.Split(metrics, "\n") {
		if name, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(name, " ")
			has[name] = true
			if kind == "histogram" {
				has[name+"_bucket"], has[name+"_sum"], has[name+"_count"] = true, true, true
			}
		}
	}
	for file, queries := range map[string][]string{"alerts.yml": alertQueries(t), "ashlar.json": dashboardQueries(t)} {
		if len(queries) < 15 {
			t.Errorf("%s has %d queries, expected at least 15", file, len(queries))
		}
		for _, query := range queries {
			names := regexp.MustCompile(`\b(ashlar|process|go)_[a-z0-9_]+|\bup\b`).FindAllString(query, -1)
			if len(names) == 0 {
				t.Errorf("%s: %s: no metric found", file, query)
			}
			for _, name := range names {
				if !has[name] {
					t.Errorf("%s: %s: no server has the metric %s", file, query, name)
				}
			}
		}
	}
	bin := promtool(t)
	checkSyntax(t, bin, dashboardQueries(t))
	check := exec.CommandContext(t.Context(), bin, "check", "metrics")
	check.Stdin = strings.NewReader(metrics)
	if out, err := check.CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}
	for _, args := range [][]string{{"check", "config", "prometheus.yml"}, {"check", "rules", "alerts.yml"}, {"test", "rules", "alerts_test.yml"}} {
		run := exec.CommandContext(t.Context(), bin, args...)
		run.Dir = filepath.Join("..", "deploy", "prometheus")
		if out, err := run.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// checkSyntax checks queries of the dashboard as rules, without those that list the values of a label.
func checkSyntax(t *testing.T, promtool string, queries []string) {
	t.Helper()
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	type group struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	}
	rules := group{Name: "dashboard"}
	for i, query := range queries {
		if !strings.HasPrefix(query, "label_values(") {
			rules.Rules = append(rules.Rules, rule{fmt.Sprint("query_", i), strings.ReplaceAll(query, "$__rate_interval", "1m")})
		}
	}
	encoded, err := json.Marshal(map[string]any{"groups": []group{rules}}) // JSON is YAML
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "rules.yml")
	if err := os.WriteFile(file, encoded, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), promtool, "check", "rules", file).CombinedOutput(); err != nil {
		t.Errorf("queries of the dashboard: %v\n%s", err, out)
	}
}

// alertQueries returns the queries of the alerts. Each alert is tested, and in the runbook.
func alertQueries(t *testing.T) (queries []string) {
	t.Helper()
	alerts, tests, runbook := deployed(t, "prometheus/alerts.yml"), deployed(t, "prometheus/alerts_test.yml"), deployed(t, "../docs/runbook.md")
	for _, m := range regexp.MustCompile(`(?m)^ +- alert: (\w+)\n +expr: (.*)$`).FindAllStringSubmatch(alerts, -1) {
		queries = append(queries, m[2])
		if !strings.Contains(tests, "alertname: "+m[1]+"\n") || !strings.Contains(tests, "alertname: "+m[1]+", exp_alerts: []") {
			t.Errorf("alert %s has no test in which it fires, and one in which it does not", m[1])
		}
		if !strings.Contains(runbook, "\n## "+m[1]+"\n") {
			t.Errorf("docs/runbook.md has no entry for the alert %s", m[1])
		}
	}
	return queries
}

// dashboardQueries returns the queries of the dashboard. Its panels have IDs of their own, and do not overlap.
func dashboardQueries(t *testing.T) (queries []string) {
	t.Helper()
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Query any }
		}
	}
	if err := json.Unmarshal([]byte(deployed(t, "grafana/ashlar.json")), &board); err != nil {
		t.Fatal(err)
	}
	ids, places := make(map[int]bool), make(map[[2]int]string)
	for _, panel := range board.Panels {
		if ids[panel.ID] {
			t.Errorf("the panel %q has the ID %d of another one", panel.Title, panel.ID)
		}
		ids[panel.ID] = true
		for i := range panel.GridPos.W * panel.GridPos.H {
			at := [2]int{panel.GridPos.X + i%panel.GridPos.W, panel.GridPos.Y + i/panel.GridPos.W}
			if other := places[at]; other != "" {
				t.Fatalf("the panels %q and %q overlap", panel.Title, other)
			}
			places[at] = panel.Title
		}
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
		}
	}
	for _, variable := range board.Templating.List {
		if query, ok := variable.Query.(map[string]any); ok {
			queries = append(queries, fmt.Sprint(query["query"]))
		}
	}
	return queries
}

func deployed(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "deploy", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// logBuffer is a buffer that a server's goroutines log to.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// captureLog sends what the default logger logs until the test ends to a buffer, as JSON.
func captureLog(t *testing.T) *logBuffer {
	out, before := new(logBuffer), slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(out, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return out
}

// TestRequestLog checks that the lines about requests have what an operator needs, over
// HTTP and after a reload, and no key.
func TestRequestLog(t *testing.T) {
	out := captureLog(t)
	s, key := served(t, nil)
	url := "http://" + s.Addr().String() + "/v3/" + key
	post(t, url, blockNumber, http.StatusOK)
	if strings.Contains(out.String(), `"msg":"request"`) {
		t.Error("requests are logged, expected them not to be by default")
	}
	changed := s.config
	changed.Log.Requests = true
	if err := s.Reload(changed); err != nil {
		t.Fatal(err)
	}
	post(t, url, blockNumber, http.StatusOK)
	_, rest, ok := strings.Cut(out.String(), `"msg":"request"`)
	if !ok || !strings.Contains(rest, `"method":"eth_blockNumber","calls":1,"code":0,"took":`) || !strings.Contains(rest, fmt.Sprintf(`"asked_bytes":%d,"answered_bytes":`, len(blockNumber))) {
		t.Errorf("logged %s, expected a line about the request", out.String())
	}
	if strings.Contains(out.String(), key) {
		t.Error("the log has a key")
	}
	changed.Log.Requests, changed.Log.Slow = false, time.Nanosecond
	if err := s.Reload(changed); err != nil {
		t.Fatal(err)
	}
	post(t, url, blockNumber, http.StatusOK)
	if !strings.Contains(out.String(), `"msg":"slow request"`) {
		t.Error("a slow request is not logged")
	}
}
