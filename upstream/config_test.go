package upstream

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

func TestNodesAreWrittenInThreeWays(t *testing.T) {
	for text, want := range map[string]string{
		"http://a.test":                               "http://a.test",
		"[http://a.test, {url: http://b.test}]":       "http://a.test http://b.test",
		"{url: http://b.test, backup: true, rate: 5}": "http://b.test",
		"- url: http://c.test\n  headers: ['X: y']":   "http://c.test",
	} {
		var nodes Nodes
		if err := yaml.Unmarshal([]byte(text), &nodes); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		var urls []string
		for _, n := range nodes {
			urls = append(urls, n.URL)
		}
		if got := strings.Join(urls, " "); got != want || nodes.Check() != nil {
			t.Errorf("%s: %s, %v", text, got, nodes.Check())
		}
	}
	for _, text := range []string{"5: 6", "[[http://a.test]]", "{backup: true}", "[{url: http://a.test, rat: 5}]"} {
		var nodes Nodes
		if err := yaml.UnmarshalWithOptions([]byte(text), &nodes, yaml.Strict()); err == nil && nodes.Check() == nil {
			t.Errorf("%s: %+v, expected an error", text, nodes)
		}
	}
}

func TestCheck(t *testing.T) {
	for want, n := range map[string]Node{
		"unknown scheme":           {URL: "ws://a.test"},
		"has no host":              {URL: "http:///secret"},
		"want one of them":         {URL: "http://a.test/{key}", KeyFile: "f", KeyEnv: "E"},
		"the key is not used":      {URL: "http://a.test", KeyEnv: "E"},
		"without a key":            {URL: "http://a.test/{key}"},
		"is negative":              {URL: "http://a.test", Rate: -1},
		"invalid header":           {URL: "http://a.test", Headers: []string{"nothing"}},
		`invalid units "x"`:        {URL: "http://a.test", Units: []string{"x"}},
		`invalid units "eth_x=no"`: {URL: "http://a.test", Units: []string{"eth_x=no"}},
	} {
		err := Nodes{{URL: "http://a.test"}, n}.Check()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "number 2 of 2: ") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, expected %q", n, err, want)
		}
	}
}

func TestKeyFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	nodes := Nodes{{URL: "http://a.test/{key}", KeyFile: file}}
	if err := nodes.CheckFiles(); err == nil {
		t.Error("a missing file is accepted")
	}
	for _, text := range []string{"", " abc\n"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := nodes.CheckFiles(); (err == nil) != (text != "") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if key, err := nodes[0].key(); key != "abc" || err != nil {
		t.Error(key, err)
	}
}

// A key may be in the host. The name of the node does not show it.
func TestKeyInHost(t *testing.T) {
	t.Setenv("UPSTREAM_TEST_KEY", "secret")
	nodes := Nodes{{URL: "https://{key}.a.test/v1", KeyEnv: "UPSTREAM_TEST_KEY"}}
	if err := nodes.Check(); err != nil {
		t.Error(err)
	}
	p, err := New(Config{Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	if name := p.Status()[0].Name; name != "https://key.a.test" {
		t.Errorf("the node is called %s", name)
	}
}
