// Command licences prints the licences of all modules in the program, as they must be
// distributed with it.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

func main() {
	all, err := modules()
	for _, m := range all {
		if err == nil {
			err = m.print(os.Stdout)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "licences:", err)
		os.Exit(1)
	}
}

// module is a module in the program.
type module struct {
	Path, Version, Dir string
}

// modules lists the modules of which the program has at least one package, in order.
func modules() ([]module, error) {
	list := exec.Command("go", "list", "-deps", "-json=Module", "ashlar/cmd/ashlar")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages of the program: %w", err)
	}
	var all []module
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *module }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Module != nil && p.Module.Version != "" && !slices.Contains(all, *p.Module) {
			all = append(all, *p.Module)
		}
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// withoutFile are modules that state their licence in the comment of a source file only.
func withoutFile() map[string]string {
	return map[string]string{"github.com/holiman/bloomfilter/v2": "bloomfilter.go"}
}

// header returns the lines of a source file before its package clause.
func (m module) header() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(m.Dir, withoutFile()[m.Path]))
	before, _, _ := bytes.Cut(text, []byte("\npackage "))
	return before, err
}

// files returns the files of a module that have its licence.
func (m module) files() (files []string, err error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, err
	}
	named := regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|notice)`)
	for _, entry := range entries {
		if entry.Type().IsRegular() && named.MatchString(entry.Name()) && filepath.Ext(entry.Name()) != ".go" {
			files = append(files, filepath.Join(m.Dir, entry.Name()))
		}
	}
	return files, nil
}

// kinds returns the SPDX names of the licences of a module.
func (m module) kinds() (kinds []string, err error) {
	files, err := m.files()
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, match := range licensecheck.Scan(text).Match {
			if !match.IsURL && !slices.Contains(kinds, match.ID) {
				kinds = append(kinds, match.ID)
			}
		}
	}
	if withoutFile()[m.Path] != "" {
		header, err := m.header()
		if err != nil {
			return nil, err
		}
		if bytes.Contains(header, []byte("\n// MIT license\n")) {
			kinds = append(kinds, "MIT")
		}
	}
	slices.Sort(kinds)
	return kinds, nil
}

func (m module) print(out io.Writer) error {
	files, err := m.files()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n%s %s\n%[1]s\n\n", strings.Repeat("=", 80), m.Path, m.Version)
	if withoutFile()[m.Path] != "" {
		header, err := m.header()
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s\n\n", header)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "%s\n\n", bytes.TrimSpace(text)); err != nil {
			return err
		}
	}
	return nil
}
