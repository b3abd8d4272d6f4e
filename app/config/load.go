package config

import (
	"bytes"
	"cmp"
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

// Load reads ashlar.yaml over the defaults; families are the known families of networks.
// Errors name the file, the line, and what is expected there.
func Load(path string, families family.Families) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Default(), fmt.Errorf("configuration: %w", err)
	}
	return parse(path, text, families)
}

// Check is Load with additional checks of the files named by the configuration, which a
// server reads when it starts, and of what it listens at.
func Check(path string, families family.Families) (Config, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Default(), fmt.Errorf("configuration: %w", err)
	}
	c, err := parse(path, text, families)
	if err != nil {
		return c, err
	}
	return c, checkRules(path, text, append(c.fileRules(families), c.listenerRules(families)...))
}

// parse parses text, the contents of the file path.
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
		return c, nil // an empty document would set everything to zero
	}
	body := parsed.Docs[0].Body
	own := takeOwn(body)
	if err := checkValues(path, "", body, reflect.TypeFor[Config]()); err != nil {
		return c, err
	}
	if err := yaml.NodeToValue(body, &c, yaml.Strict()); err != nil {
		return c, syntaxError(path, err)
	}
	if c.Accounts.Mail.Server != "" && c.Dashboard.checkURL() == nil {
		c.Accounts.Mail.Link = cmp.Or(c.Accounts.Mail.Link, c.Dashboard.URL)
	}
	wrong := c.readOwn(path, own, families)
	return c, errors.Join(wrong, checkRules(path, text, c.rules(families)))
}

// syntaxError returns a parser's error with its line.
func syntaxError(path string, err error) error {
	return fmt.Errorf("%s: %s", path, yaml.FormatError(err, false, true))
}

// rule is a check of one entry.
type rule struct {
	path  string
	check func() error
}

// checkRules returns the errors of all rules, each with the line of its entry.
func checkRules(path string, text []byte, rules []rule) error {
	var problems []error
	for _, rule := range rules {
		if err := rule.check(); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", place(path, text, rule.path), err))
		}
	}
	return errors.Join(problems...)
}

// place returns the position of an entry as "file:line: entry". If the entry is missing,
// the line is that of the entry that would contain it.
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
