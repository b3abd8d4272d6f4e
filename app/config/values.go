package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"ashlar/family"
	"ashlar/history/retention"
	"ashlar/typo"

	"github.com/goccy/go-yaml/ast"
)

// checkValues reports unknown entries, and numbers, times and sizes in a wrong format. The
// decoder would round numbers, and its errors name Go types. entry is the path of node, which
// is decoded into type want.
func checkValues(path, entry string, node ast.Node, want reflect.Type) error {
	if want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	if want.Kind() == reflect.Slice && readsItself(want) {
		return checkForms(path, entry, node, want.Elem())
	}
	if expected := checkForm(node, want); expected != "" {
		return fmt.Errorf("%s:%d: %s: %sexpected %s", path, node.GetToken().Position.Line, entry, quoted(node), expected)
	}
	var problems []error
	switch n := node.(type) {
	case *ast.MappingNode:
		for _, value := range n.Values {
			key := keyOf(value)
			inside := strings.TrimPrefix(entry+"."+key, ".")
			if of := memberType(want, key); of != nil {
				problems = append(problems, checkValues(path, inside, value.Value, of))
			} else if want.Kind() == reflect.Struct {
				problems = append(problems, fmt.Errorf("%s:%d: %s: unknown entry%s", path, value.Key.GetToken().Position.Line, inside, meant(want, key)))
			}
		}
	case *ast.SequenceNode:
		if want.Kind() == reflect.Slice {
			for _, value := range n.Values {
				problems = append(problems, checkValues(path, entry, value, want.Elem()))
			}
		}
	case ast.ScalarNode:
		if n.Type() == ast.NullType {
			return nil
		}
		text := n.GetToken().Value
		if expected := checkValue(text, want); expected != "" {
			return fmt.Errorf("%s:%d: %s: %q is wrong: expected %s", path, n.GetToken().Position.Line, entry, text, expected)
		}
	}
	return errors.Join(problems...)
}

// meant returns a hint which entry of a struct an unknown one was probably meant to be, and
// where all are listed.
func meant(of reflect.Type, unknown string) string {
	var names []string
	for i := range of.NumField() {
		if name := of.Field(i).Tag.Get("yaml"); name != "" {
			names = append(names, name)
		}
	}
	if name := typo.Meant(names, unknown); name != "" {
		return fmt.Sprintf("; did you mean %s?", name)
	}
	return "; `ashlar config example` prints all entries"
}

// memberType returns the type of an entry in a type, or nil.
func memberType(of reflect.Type, key string) reflect.Type {
	switch of.Kind() {
	case reflect.Map:
		return of.Elem()
	case reflect.Struct:
		for i := range of.NumField() {
			if field := of.Field(i); field.Tag.Get("yaml") == key {
				return field.Type
			}
		}
	}
	return nil
}

// checkValue returns what is expected if text is not valid for a type, else "".
func checkValue(text string, want reflect.Type) (expected string) {
	var err error
	digits := strings.ReplaceAll(text, "_", "")
	switch {
	case want == reflect.TypeFor[time.Duration]():
		_, err = time.ParseDuration(text)
		expected = "a time such as 500ms, 10s, 2m or 1h"
	case want == reflect.TypeFor[Bytes]():
		_, err = family.ParseBytes(text)
		expected = family.ExpectedBytes
	case want == reflect.TypeFor[retention.Span]():
		_, err = retention.Parse(text)
		expected = retention.Expected
	case want.Kind() == reflect.Int:
		_, err = strconv.ParseInt(digits, 0, 64)
		expected = "a whole number"
	case want.Kind() == reflect.Uint64:
		_, err = strconv.ParseUint(digits, 0, 64)
		expected = "a whole number, 0 or more"
	case want.Kind() == reflect.Float64:
		_, err = strconv.ParseFloat(digits, 64)
		expected = "a number"
	}
	if err == nil {
		return ""
	}
	return expected
}
