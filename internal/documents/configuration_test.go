package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ashlar/app"
	"ashlar/app/config"
)

var (
	fenced   = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")
	indented = regexp.MustCompile(`(?m)^    networks:\n(?:    .*\n)+`)
)

// TestConfigurations: what the documents show as a configuration is one, as far as it can be checked without its files.
func TestConfigurations(t *testing.T) {
	shown := 0
	for page, text := range pages(t) {
		if page == "CONTRIBUTING.md" { // it configures a family that its reader adds
			continue
		}
		var all []string
		for _, found := range fenced.FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
		for _, found := range indented.FindAllString(text, -1) {
			all = append(all, strings.ReplaceAll("\n"+found, "\n    ", "\n"))
		}
		for _, example := range all {
			shown++
			if strings.Contains(example, "role:") && !strings.Contains(example, "store:") { // a part of a configuration
				example = "store: {cassandra: {hosts: [a.test]}}\n" + example
			}
			path := filepath.Join(t.TempDir(), "ashlar.yaml")
			if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := config.Load(path, app.Families()); err != nil {
				t.Errorf("%s: %v in\n%s", page, err, example)
			}
		}
	}
	if shown < 15 {
		t.Errorf("found %d configurations, expected more", shown)
	}
}
