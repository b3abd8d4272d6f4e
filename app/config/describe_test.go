package config

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// walk calls visit with each entry that is not a group.
func walk(all []Entry, visit func(Entry)) {
	for _, e := range all {
		if e.Group == nil {
			visit(e)
		}
		walk(e.Group, visit)
	}
}

// TestDescribe checks that every entry of the code is described, with its meaning.
func TestDescribe(t *testing.T) {
	want := entries(t, "", reflect.ValueOf(Default()))
	found := make(map[string]bool)
	walk(Describe(families()), func(e Entry) {
		found[e.path] = true
		if _, ok := want[e.path]; !ok {
			t.Errorf("%s is described, and is not an entry", e.path)
		}
		if e.Meaning == "" || strings.Contains(e.Meaning, "`") {
			t.Errorf("%s has the meaning %q, expected plain text", e.path, e.Meaning)
		}
	})
	for path := range want {
		if !found[path] && path != "networks" {
			t.Errorf("%s is not described", path)
		}
	}
}

func example(t *testing.T) string {
	t.Helper()
	var out bytes.Buffer
	if err := WriteExample(&out, families()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestExample checks that the example changes nothing as it is, and that with its entries
// in force it is the default configuration.
func TestExample(t *testing.T) {
	for name, text := range map[string]string{"comments": example(t), "in force": uncommented(example(t))} {
		path := filepath.Join(t.TempDir(), "ashlar.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(path, families())
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c.Networks, c.Credits = nil, nil // have the placeholders in one of the cases
		if want := Default(); !reflect.DeepEqual(c, want) {
			t.Errorf("%s: %+v, expected the defaults %+v", name, c, want)
		}
	}
}

// uncommented returns the example with all entries in force, except placeholders: a network
// cannot have the entries of several families.
func uncommented(text string) string {
	var out strings.Builder
	networks := false
	for line := range strings.Lines(text) {
		entry := strings.TrimPrefix(line, "#")
		name := strings.TrimSpace(entry)
		if strings.HasPrefix(name, "#") || strings.HasPrefix(entry, " ") && !strings.HasPrefix(entry, "  ") || name == "METHOD:" {
			continue // a comment, or a placeholder
		}
		if !strings.HasPrefix(entry, " ") {
			networks = name == "networks:"
		} else if networks {
			continue
		}
		out.WriteString(entry)
	}
	return out.String()
}

// TestSchema holds configurations to the schema: what the program accepts and refuses, the
// schema does too.
func TestSchema(t *testing.T) {
	var out bytes.Buffer
	if err := WriteSchema(&out, families()); err != nil {
		t.Fatal(err)
	}
	var decoded any
	if err := json.Unmarshal(out.Bytes(), &decoded); err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("ashlar.schema.json", decoded); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("ashlar.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(document(t, "configuration.md"), "```yaml\n")
	documented, _, _ := strings.Cut(rest, "```")
	for text, right := range map[string]bool{
		documented:                    true,
		"data: x":                     true,
		"cache: 1GiB":                 true,
		"cache: 1073741824":           true,
		"drain: 20s":                  true,
		"networks: {a: {behind: 1m}}": true,
		"networks: {a: {source: ['http://a', 'http://b'], pool: sent}}": true,
		"credits: {eth_call: 5}":  true,
		"limits:":                 true,
		"limit: {}":               false,
		"drain: soon":             false,
		"networks: {a: {b: 1}}":   false,
		"log: {requests: maybe}":  false,
		"limits: {key_rate: low}": false,
	} {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		asJSON, err := json.Marshal(value)
		if err == nil {
			err = json.Unmarshal(asJSON, &value)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); (err == nil) != right {
			t.Errorf("%s: %v, expected right: %v", text, err, right)
		}
		path := filepath.Join(t.TempDir(), "ashlar.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path, families()); (err == nil) != right {
			t.Errorf("the program: %s: %v, expected right: %v", text, err, right)
		}
	}
}
