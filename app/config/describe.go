package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"ashlar/docs"
	"ashlar/family"
)

// Entry describes an entry of ashlar.yaml, or a group of entries.
type Entry struct {
	Name    string // the last part of its path; NAME and METHOD stand for any
	Default string // as it is written in ashlar.yaml; empty: nothing
	Meaning string // as docs/configuration.md says it, in plain text
	Group   []Entry

	path string
	kind reflect.Type
}

// Describe returns the entries that a file can have, in the order of the code.
func Describe(families family.Families) []Entry {
	d := describer{families, meanings()}
	return d.fields("", reflect.ValueOf(Default()))
}

// meanings returns the meanings in the tables of docs/configuration.md by path.
func meanings() map[string]string {
	all := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z_.]+)` \\| .*? ?\\| (.*) \\|$").FindAllStringSubmatch(docs.Configuration, -1) {
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(row[2], "$1") // links
		text = strings.ReplaceAll(strings.TrimSuffix(text, " *"), "`", "")
		all[row[1]] = text
	}
	return all
}

// describer describes types.
type describer struct {
	families family.Families
	meanings map[string]string
}

// fields describes the entries of a struct.
func (d describer) fields(at string, value reflect.Value) (all []Entry) {
	for i := range value.NumField() {
		if field := value.Type().Field(i); field.IsExported() {
			all = append(all, d.entry(at, field.Tag.Get("yaml"), value.Field(i)))
		}
	}
	return all
}

func (d describer) entry(at, name string, value reflect.Value) Entry {
	path := strings.TrimPrefix(at+"."+name, ".")
	e := Entry{Name: name, Meaning: d.meanings[path], path: path, kind: value.Type()}
	switch {
	case e.kind == reflect.TypeFor[map[string]Network]():
		e.Group = []Entry{d.network(path)}
	case e.kind == reflect.TypeFor[map[string]int]():
		e.Group = []Entry{{Name: "METHOD", Meaning: d.meanings[path+".METHOD"], path: path + ".METHOD", kind: reflect.TypeFor[int]()}}
	case e.kind.Kind() == reflect.Struct:
		e.Group = d.fields(path, value)
	default:
		e.Default = written(value)
	}
	return e
}

// network describes a network, with the entries of all families.
func (d describer) network(at string) Entry {
	e := Entry{Name: "NAME", path: at + ".NAME", Group: d.fields(at+".NAME", reflect.ValueOf(Network{}))}
	for _, f := range d.families {
		for _, own := range d.fields(e.path, reflect.ValueOf(f.Entries()).Elem()) {
			if !slices.ContainsFunc(e.Group, func(has Entry) bool { return has.Name == own.Name }) {
				e.Group = append(e.Group, own)
			}
		}
	}
	return e
}

// written returns a value as ashlar.yaml has it, or "" if it is empty.
func written(value reflect.Value) string {
	switch {
	case value.Kind() == reflect.Pointer && value.IsNil():
		return ""
	case value.Type() == reflect.TypeFor[time.Duration]():
		text := strings.Replace(value.Interface().(time.Duration).String(), "m0s", "m", 1)
		return strings.Replace(text, "h0m", "h", 1)
	case value.Kind() == reflect.Slice:
		var quoted []string
		for i := range value.Len() {
			quoted = append(quoted, fmt.Sprintf("%q", value.Index(i)))
		}
		if quoted == nil {
			return ""
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return fmt.Sprint(value)
}
