package app

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/app/config"
)

// TestMetricsOfNodesAtOneHost: a node that a network follows and that answers for it, and two nodes at one host, have
// series of their own. One series twice would make all metrics fail.
func TestMetricsOfNodesAtOneHost(t *testing.T) {
	data := t.TempDir()
	file := filepath.Join(data, ".ashlar.yaml")
	text := `
listen: 127.0.0.1:0
operator: 127.0.0.1:0
networks:
  both: {check: state, genesis: sepolia, upstream: "http://127.0.0.1:1", source: "http://127.0.0.1:1"}
  group: {family: starknet, source: ["http://127.0.0.1:1/a", "http://127.0.0.1:1/b"], quorum: 2}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(file, Families())
	if err != nil {
		t.Fatal(err)
	}
	c.Data = data
	s, _, stop := running(t, c)
	defer stop()
	status, metrics := get(t, "http://"+s.operator.listener.Addr().String()+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("the metrics: %d %s", status, metrics)
	}
	for _, name := range []string{
		`network="both",upstream="http://127.0.0.1:1"`, `network="both",upstream="http://127.0.0.1:1 (upstream)"`,
		`network="group",upstream="127.0.0.1:1"`, `network="group",upstream="127.0.0.1:1 (2)"`,
	} {
		if !strings.Contains(metrics, "\nashlar_upstream_used{"+name+"} ") {
			t.Errorf("the metrics lack the node %s", name)
		}
	}
}
