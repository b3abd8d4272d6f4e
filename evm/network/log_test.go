package network

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// Lines of nodes and of the light client have the network's name, although both are made before the network has it.
func TestLogNamesTheNetwork(t *testing.T) {
	var text bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&text, nil)))
	defer slog.SetDefault(before)
	n := new(network)
	log := n.log().With("upstream", "a")
	log.Warn("early")
	n.name = "sepolia"
	log.Warn("the head stays")
	lines := strings.Split(text.String(), "\n")
	if strings.Contains(lines[0], "network=") || !strings.Contains(lines[1], "upstream=a network=sepolia") {
		t.Errorf("the log is:\n%s", &text)
	}
}
