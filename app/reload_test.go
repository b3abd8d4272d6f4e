package app

import (
	"log/slog"
	"strings"
	"testing"

	"ashlar/app/config"
)

// TestReloadNamesRestarts: a reload names each changed entry that takes a restart, as
// docs/configuration.md marks them.
func TestReloadNamesRestarts(t *testing.T) {
	var out logBuffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	defer slog.SetDefault(before)
	s, _ := served(t, nil)
	for entry, change := range map[string]func(*config.Config){
		"role":   func(c *config.Config) { c.Role = config.Standby },
		"store":  func(c *config.Config) { c.Store.Cassandra.Hosts = []string{"10.0.0.1"} },
		"listen": func(c *config.Config) { c.Listen = "127.0.0.1:1" },
	} {
		changed := s.config
		change(&changed)
		if err := s.Reload(changed); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), "entry="+entry+"\n") {
			t.Errorf("the reload with another %s does not say that it takes a restart", entry)
		}
	}
}
