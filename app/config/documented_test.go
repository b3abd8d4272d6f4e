package config

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"ashlar/evm/network"
	"ashlar/family"
	forwarded "ashlar/forwarded/network"
	starknet "ashlar/starknet/network"

	"github.com/goccy/go-yaml"
)

func families() family.Families {
	return family.Families{network.Family{}, starknet.Family{}, forwarded.Family{}}
}

func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// entries lists the entries below one of the configuration, with their defaults as
// docs/configuration.md writes them.
func entries(t *testing.T, at string, value reflect.Value) map[string]string {
	t.Helper()
	all := make(map[string]string)
	switch {
	case value.Type() == reflect.TypeFor[map[string]Network]():
		all[at] = ""
		maps.Copy(all, entries(t, at+".NAME", reflect.ValueOf(Network{})))
		for _, f := range families() {
			maps.Copy(all, entries(t, at+".NAME", reflect.ValueOf(f.Entries()).Elem()))
		}
	case value.Type() == reflect.TypeFor[map[string]int]():
		all[at+".METHOD"] = "table"
	case value.Kind() == reflect.Struct:
		for i := range value.NumField() {
			if !value.Type().Field(i).IsExported() {
				continue
			}
			name := strings.TrimPrefix(at+"."+value.Type().Field(i).Tag.Get("yaml"), ".")
			maps.Copy(all, entries(t, name, value.Field(i)))
		}
	case value.Kind() == reflect.Slice && value.Len() == 0, value.Kind() == reflect.String && value.Len() == 0, value.Kind() == reflect.Pointer && value.IsNil():
		all[at] = ""
	case value.Kind() == reflect.Slice:
		var quoted []string
		for i := range value.Len() {
			quoted = append(quoted, fmt.Sprintf("%q", value.Index(i)))
		}
		all[at] = "`[" + strings.Join(quoted, ", ") + "]`"
	case value.Type() == reflect.TypeFor[time.Duration]():
		text := strings.Replace(value.Interface().(time.Duration).String(), "m0s", "m", 1)
		all[at] = "`" + strings.Replace(text, "h0m", "h", 1) + "`"
	default:
		all[at] = fmt.Sprintf("`%v`", value)
	}
	return all
}

// docs/configuration.md has a row for each entry, with its default, and no others.
func TestConfigurationIsDocumented(t *testing.T) {
	want := entries(t, "", reflect.ValueOf(Default()))
	rows := regexp.MustCompile("(?m)^\\| `([a-zA-Z_.]+)` \\| (.*?) ?\\| ").FindAllStringSubmatch(document(t, "configuration.md"), -1)
	found := make(map[string]bool)
	for _, row := range rows {
		name, standard := row[1], row[2]
		if strings.HasPrefix(standard, "[table]") {
			standard = "table"
		}
		expected, ok := want[name]
		switch {
		case !ok:
			t.Errorf("docs/configuration.md has a row for %s, which is not an entry", name)
		case found[name]:
			t.Errorf("docs/configuration.md has two rows for %s", name)
		case standard != expected:
			t.Errorf("docs/configuration.md says that the default of %s is %s, but it is %s", name, standard, expected)
		}
		found[name] = true
	}
	for name := range want {
		if !found[name] {
			t.Errorf("docs/configuration.md has no row for %s", name)
		}
	}
}

// The example in docs/configuration.md is right.
func TestDocumentedConfigurationIsRight(t *testing.T) {
	_, rest, _ := strings.Cut(document(t, "configuration.md"), "```yaml\n")
	text, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatal("no example found")
	}
	path := filepath.Join(t.TempDir(), "ashlar.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Check(path, families()); err != nil {
		t.Error(err)
	}
	var keys map[string]any
	if err := yaml.Unmarshal([]byte(text), &keys); err != nil || len(keys) < 5 {
		t.Errorf("%d entries, %v", len(keys), err)
	}
}
