package app

import (
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// ownMetrics returns the metrics that a server may have, as rows of docs/runbook.md by name.
func ownMetrics(t *testing.T) map[string]string {
	t.Helper()
	all := make(map[string]string)
	text := regexp.MustCompile(`fqName: "(ashlar_\w+)", help: "([^"]*)", unit: "", constLabels: \{\}, variableLabels: \{([^}]*)\}`)
	add := func(d *prometheus.Desc) {
		found := text.FindStringSubmatch(d.String())
		if found == nil {
			t.Fatalf("cannot read %s", d)
		}
		var labels []string
		for _, label := range strings.FieldsFunc(found[3], func(r rune) bool { return r == ',' }) {
			labels = append(labels, "`"+label+"`")
		}
		all[found[1]] = fmt.Sprintf("| `%s` | %s | %s |", found[1], strings.Join(labels, ", "), found[2])
	}
	m := newMetrics()
	counted := make(chan *prometheus.Desc, 2)
	m.calls.Describe(counted)
	m.seconds.Describe(counted)
	for range 2 {
		add(<-counted)
	}
	collected := reflect.ValueOf(newServiceCollector(nil).gauges)
	for i := range collected.NumField() {
		add((*prometheus.Desc)(collected.Field(i).UnsafePointer()))
	}
	return all
}

// TestMetricsAreDocumented: the table of docs/runbook.md has each metric that a server may have, and no
// document names another one.
func TestMetricsAreDocumented(t *testing.T) {
	own := ownMetrics(t)
	text := document(t, "runbook.md")
	for name, row := range own {
		if !strings.Contains(text, "\n"+row+"\n") {
			t.Errorf("docs/runbook.md lacks the row of %s, expected\n%s", name, row)
		}
	}
	for _, name := range []string{"configuration.md", "runbook.md", "cluster.md", "reliability.md", "forwarded.md", "starknet.md", "guides/sizing.md", "guides/backups.md"} {
		for _, found := range regexp.MustCompile("`(ashlar_[a-z_]+)[`{]").FindAllStringSubmatch(document(t, name), -1) {
			if own[found[1]] == "" {
				t.Errorf("docs/%s names %s, which no server has", name, found[1])
			}
		}
	}
	for line := range strings.Lines(liveMetrics(t)) {
		name, typed := strings.CutPrefix(line, "# TYPE ashlar_")
		if name, _, _ = strings.Cut("ashlar_"+name, " "); typed && own[name] == "" {
			t.Errorf("%s is not described by its collector", name)
		}
	}
}
