// Package documents checks that the documents point at things that exist: files, headings,
// folders and fuzz targets. It has no code, only tests.
package documents

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

// pages returns the Markdown documents by their paths below the root.
func pages(t *testing.T) map[string]string {
	t.Helper()
	texts := make(map[string]string)
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guides/*.md", "deploy/*/*.md"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.ToSlash(name)] = string(text)
		}
	}
	if texts["README.md"] == "" || len(texts) < 5 {
		t.Fatalf("found %d documents, want README.md and those in docs", len(texts))
	}
	return texts
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	dropped = regexp.MustCompile(`[^\pL\pN_\- ]`)
)

// anchors returns the fragments with which links name the headings of a text.
func anchors(text string) map[string]bool {
	all := make(map[string]bool)
	for _, found := range heading.FindAllStringSubmatch(text, -1) {
		title := dropped.ReplaceAllString(strings.ToLower(found[1]), "")
		all[strings.ReplaceAll(title, " ", "-")] = true
	}
	return all
}

// brokenLink returns what is wrong with a link in a page, or nil.
func brokenLink(texts map[string]string, page, target string) error {
	file, fragment, _ := strings.Cut(target, "#")
	name := page
	if file != "" {
		name = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
	}
	if _, err := os.Stat(filepath.Join(root, name)); err != nil {
		return fmt.Errorf("link to %s: %w", target, err)
	}
	if text, ok := texts[name]; ok && fragment != "" && !anchors(text)[fragment] {
		return fmt.Errorf("link to %s: %s has no such heading", target, name)
	}
	return nil
}

func TestLinks(t *testing.T) {
	texts := pages(t)
	for page, text := range texts {
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if target := found[1]; !strings.Contains(target, "://") {
				if err := brokenLink(texts, page, target); err != nil {
					t.Errorf("%s: %v", page, err)
				}
			}
		}
	}
	for _, target := range []string{"docs/nowhere.md", "#nowhere", "docs/format.md#nowhere"} {
		if brokenLink(texts, "README.md", target) == nil {
			t.Errorf("a link to %s is not noticed", target)
		}
	}
}

// named matches a path in code style, such as `evm/archive` or `kv/pebble/crash_test.go`, and
// a package as an argument of the go command.
var named = regexp.MustCompile("`([a-z][a-z0-9_]*(?:/[a-z0-9_]+)+(?:\\.[a-z]+)?)`|(?:go (?:run|test|build) .*?)\\./([a-z][a-z0-9_/]*)")

// TestPaths checks the paths below folders of this repository that documents name.
func TestPaths(t *testing.T) {
	count := 0
	for page, text := range pages(t) {
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			path := found[1] + found[2]
			first, _, _ := strings.Cut(path, "/")
			if folder, err := os.Stat(filepath.Join(root, first)); found[2] == "" && (err != nil || !folder.IsDir()) {
				continue // not in this repository, such as application/json, or ashlar/kv beside a built ashlar
			}
			count++
			if _, err := os.Stat(filepath.Join(root, path)); err != nil {
				t.Errorf("%s names %s: %v", page, path, err)
			}
		}
	}
	if count < 20 {
		t.Errorf("found %d paths in documents, want at least 20", count)
	}
}

var fuzzRow = regexp.MustCompile("(?m)^\\| `([a-z0-9_/]+)` \\| (Fuzz[A-Za-z0-9]+)")

// TestFuzzTargets checks the rows of docs/reliability.md that name a fuzz target.
func TestFuzzTargets(t *testing.T) {
	rows := fuzzRow.FindAllStringSubmatch(pages(t)["docs/reliability.md"], -1)
	if len(rows) == 0 {
		t.Fatal("docs/reliability.md names no fuzz targets")
	}
	for _, row := range rows {
		files, err := filepath.Glob(filepath.Join(root, row[1], "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		exists := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			exists = exists || strings.Contains(string(text), "\nfunc "+row[2]+"(")
		}
		if !exists {
			t.Errorf("docs/reliability.md names %s in %s, which has no such target", row[2], row[1])
		}
	}
}
