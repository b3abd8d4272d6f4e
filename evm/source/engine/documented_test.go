package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// docs/methods.md names every method and every error.
func TestDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "methods.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "## The Engine API")
	section, _, _ = strings.Cut(section, "\n## ")
	for name := range New(Config{}).Methods() {
		base, version, _ := strings.Cut(name, "V")
		if !strings.Contains(section, "`"+name+"`") && !(strings.Contains(section, "`"+base+"V1`") && (strings.Contains(section, "`V"+version+"`") || base == "engine_getPayload")) {
			t.Errorf("docs/methods.md does not name %s", name)
		}
	}
	for _, code := range []string{"-38001", "-38002", "-38003", "-38004", "-38005", "-38006", "-32602"} {
		if !strings.Contains(section, code) {
			t.Errorf("docs/methods.md does not tell of error %s", code)
		}
	}
}
