package app

import (
	"bytes"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"testing"

	"ashlar/app/config"
)

func port(s *Service) string {
	_, port, _ := net.SplitHostPort(s.Addr().String())
	return port
}

func TestDashboardURL(t *testing.T) {
	for _, c := range []struct {
		name, port, want string
		change           func(*config.Config)
	}{
		{"default", "", "http://localhost:8545", func(*config.Config) {}},
		{"its port", "1234", "http://localhost:1234", func(*config.Config) {}},
		{"none", "", "", func(c *config.Config) { c.Dashboard.Hosts = nil }},
		{"with TLS", "", "https://dash.example.org", func(c *config.Config) {
			c.Dashboard.Hosts, c.Listen, c.TLS.Certificate = []string{"dash.example.org"}, ":443", "cert.pem"
		}},
		{"any host", "", "http://localhost", func(c *config.Config) {
			c.Dashboard.Hosts, c.Listen, c.TLS.Certificate = []string{"*"}, "0.0.0.0:80", ""
		}},
		{"any host of an address", "", "http://192.0.2.7:8545", func(c *config.Config) {
			c.Dashboard.Hosts, c.Listen = []string{"*"}, "192.0.2.7:8545"
		}},
		{"IPv6", "", "http://[::1]", func(c *config.Config) { c.Dashboard.Hosts, c.Listen = []string{"[::1]"}, ":80" }},
		{"behind a proxy", "1234", "https://dash.example.org", func(c *config.Config) { c.Dashboard.URL = "https://dash.example.org/" }},
		{"other than in e-mails", "", "https://dash.example.org", func(c *config.Config) {
			c.Dashboard.URL, c.Accounts.Mail.Link = "https://dash.example.org", "https://rpc.example.org"
		}},
		{"as in e-mails", "", "https://rpc.example.org", func(c *config.Config) { c.Accounts.Mail.Link = "https://rpc.example.org/" }},
	} {
		t.Run(c.name, func(t *testing.T) {
			made := config.Default()
			c.change(&made)
			if got := DashboardURL(&made, c.port); got != c.want {
				t.Errorf("%q, expected %q", got, c.want)
			}
		})
	}
}

// A server without an operator logs one link, which works.
func TestFirstOperatorsLink(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	data := t.TempDir()
	makeNetwork(t, data)
	c := config.Default()
	c.Data, c.Listen = data, "127.0.0.1:0"
	s, key, stop := running(t, c)
	if status, answer := ask(t, s, key, ""); status != http.StatusOK { // it runs
		t.Errorf("%d %s", status, answer)
	}
	if !s.accounts.AwaitsFirst() {
		t.Error("no operator is awaited")
	}
	stop()
	slog.SetDefault(before)
	links := regexp.MustCompile(`http://localhost:\d+/setup\?token=([0-9a-f]{32})`).FindAllStringSubmatch(log.String(), -1)
	if len(links) != 1 {
		t.Fatalf("%d links in the log\n%s", len(links), &log)
	}
	if err := s.accounts.First(links[0][1]); err != nil {
		t.Error(err)
	}
}
