package recent

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

func TestEvents(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(NewHandler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelWarn})))
	of := log.With("network", "mainnet")
	of.Info("reorganization", "depth", 2, "from", 10, "to", 11)
	of.With("upstream", "https://node.example").Warn("the node is not used", "because", errors.New(`Post "https://user:pass@node.example/v3/SECRET?key=SECRET": refused`))
	log.Error("network not served", "network", "sepolia", "error", "no genesis")
	for _, url := range []string{"wss://user:SECRET@node.example:8546", "http://user:SECRET@SECRET@[::1]:8545/SECRET", "https://node.example?SECRET"} {
		log.Warn("the node is not used", "network", "holesky", "why", "dial "+url+" failed")
	}
	log.With("part", "certificates").Info("using a renewed certificate", "file", "a.pem")
	of.Debug("a detail")
	of.Info("request", "key", "0102030405060708")
	of.InfoContext(Progress(t.Context()), "catching up")
	log.Warn("no operator exists", "link", "SECRET")
	of.WithGroup("group").Info("grouped", "network", "sepolia")
	for network, want := range map[string][]string{
		"mainnet": {
			"INFO grouped (network sepolia)",
			`WARN the node is not used (upstream https://node.example): Post "https://node.example/…": refused`,
			"INFO reorganization (depth 2, from 10, to 11)",
		},
		"sepolia": {"ERROR network not served: no genesis"},
		"holesky": {
			"WARN the node is not used: dial https://node.example/… failed",
			"WARN the node is not used: dial http://[::1]:8545/… failed",
			"WARN the node is not used: dial wss://node.example:8546 failed",
		},
		"":        {"INFO certificates: using a renewed certificate (file a.pem)"},
		"unknown": nil,
	} {
		var got []string
		for _, e := range Of(log).Of(network) {
			got = append(got, e.Level.String()+" "+e.Text)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q has %q, expected %q", network, got, want)
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != 6 || strings.Contains(out.String(), "level=INFO") {
		t.Errorf("the log has %d lines:\n%s", lines, out.String())
	}
	if Of(slog.New(slog.DiscardHandler)).Of("mainnet") != nil {
		t.Error("another handler has events")
	}
}

// Of URLs, only the host is kept.
func TestSecretsOfURLs(t *testing.T) {
	for given, want := range map[string]string{
		"https://user:SECRET@node.example/": "https://node.example/…",
		"https://user:SECRET@node.example":  "https://node.example",
		"wss://SECRET@node.example: EOF":    "wss://node.example: EOF",
		"https://node.example?key=SECRET":   "https://node.example/…",
		"http://127.0.0.1:8545":             "http://127.0.0.1:8545",
	} {
		log := slog.New(NewHandler(slog.DiscardHandler))
		log.Warn(given, "network", "mainnet")
		if got := Of(log).Of("mainnet")[0].Text; got != want {
			t.Errorf("%s is kept as %s, expected %s", given, got, want)
		}
	}
}

// The number and the size of events are bounded, and frequent ones do not displace warnings.
func TestBounds(t *testing.T) {
	log := slog.New(NewHandler(slog.DiscardHandler))
	of := log.With("network", "mainnet")
	of.Warn("important", "long", strings.Repeat("€", 1000))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 100 {
				of.Info("frequent", "i", i)
			}
		})
	}
	all.Wait()
	events := Of(log).Of("mainnet")
	if len(events) != kept+1 {
		t.Errorf("%d events", len(events))
	}
	if last := events[len(events)-1]; !strings.HasPrefix(last.Text, "important") || len(last.Text) > maxText+len(" …") || !strings.HasSuffix(last.Text, "€ …") {
		t.Errorf("the oldest event is %q", last.Text)
	}
	for i := range 2 * maxNetworks {
		log.Info("served", "network", fmt.Sprint(i))
	}
	if n := len(Of(log).by); n != maxNetworks {
		t.Errorf("events of %d networks", n)
	}
}
