package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"ashlar/family"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Load reads ashlar.yaml over the defaults; families are those of its networks. Its
// errors name the file and the line, and say what was expected there.
func Load(path string, families family.Families) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Default(), fmt.Errorf("configuration: %w", err)
	}
	return parse(path, text, families)
}

// Check is Load, and also checks the files that the configuration names. A server
// reads them when it starts.
func Check(path string, families family.Families) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Default(), fmt.Errorf("configuration: %w", err)
	}
	c, err := parse(path, text, families)
	if err != nil {
		return c, err
	}
	return c, checkRules(path, text, c.fileRules(families))
}

// parse reads the text of the file path.
func parse(path string, text []byte, families family.Families) (Config, error) {
	c := Default()
	if err := checkShape(path, text); err != nil {
		return c, err
	}
	parsed, err := parser.ParseBytes(text, 0)
	if err != nil {
		return c, syntaxError(path, err)
	}
	if len(parsed.Docs) == 0 || parsed.Docs[0].Body == nil || parsed.Docs[0].Body.Type() == ast.NullType {
		return c, nil // an empty document would be read as zeros
	}
	body := parsed.Docs[0].Body
	own := takeOwn(body)
	if err := checkValues(path, "", body, reflect.TypeFor[Config]()); err != nil {
		return c, err
	}
	if err := yaml.NodeToValue(body, &c, yaml.Strict()); err != nil {
		return c, syntaxError(path, err)
	}
	wrong := c.readOwn(path, own, families)
	return c, errors.Join(wrong, checkRules(path, text, c.rules(families)))
}

// syntaxError is an error of the library, with the line that it is about.
func syntaxError(path string, err error) error {
	return fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
}

// rule is a condition that an entry must meet.
type rule struct {
	path  string
	check func() error
}

// checkRules returns what is wrong by every rule, with the line of its entry.
func checkRules(path string, text []byte, rules []rule) error {
	var problems []error
	for _, rule := range rules {
		if err := rule.check(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", place(path, text, rule.path), err))
		}
	}
	return errors.Join(problems...)
}

// place names the line of an entry, as "file:line: entry". For an entry that is not
// there it is the line of the entry that it would be in.
func place(file string, text []byte, entry string) string {
	name := entry[len("$."):]
	for ; entry != "$"; entry = entry[:strings.LastIndexByte(entry, '.')] {
		path, err := yaml.PathString(entry)
		if err != nil {
			break
		}
		annotated, err := path.AnnotateSource(text, false)
		if err != nil {
			continue
		}
		for line := range bytes.Lines(annotated) {
			var number int
			if _, err := fmt.Sscanf(string(line), "> %d", &number); err == nil {
				return fmt.Sprintf("%s:%d: %s", file, number, name)
			}
		}
	}
	return fmt.Sprintf("%s: %s", file, name)
}
