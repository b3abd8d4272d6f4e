package config

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// readsItself reports whether a type decodes itself, and so may be written in several forms.
func readsItself(of reflect.Type) bool {
	return reflect.PointerTo(of).Implements(reflect.TypeFor[yaml.InterfaceUnmarshaler]())
}

// checkForms is checkValues for a list that may also be written as one of its elements, and
// whose elements may be written as a word.
func checkForms(path, entry string, node ast.Node, element reflect.Type) error {
	switch n := node.(type) {
	case *ast.MappingNode:
		return checkValues(path, entry, n, element)
	case *ast.SequenceNode:
		var problems []error
		for _, value := range n.Values {
			problems = append(problems, checkForms(path, entry, value, element))
		}
		return errors.Join(problems...)
	}
	return nil
}

// checkForm returns what is expected if a node cannot be decoded into a type whatever its
// words are, else "".
func checkForm(node ast.Node, want reflect.Type) (expected string) {
	var is reflect.Kind
	switch node.(type) {
	case *ast.MappingNode:
		is = reflect.Map
	case *ast.SequenceNode:
		is = reflect.Slice
	case ast.ScalarNode:
		is = reflect.String
	default:
		return ""
	}
	switch kind := want.Kind(); {
	case node.Type() == ast.NullType:
		return ""
	case kind == reflect.Struct || kind == reflect.Map:
		if is != reflect.Map {
			return "entries below it"
		}
	case kind == reflect.Slice:
		if is != reflect.Slice {
			return "a list, such as [a, b]"
		}
	case is == reflect.Map:
		return "one value, not entries (a text with a colon needs quotes)"
	case is != reflect.String:
		return "one value"
	case kind == reflect.Bool && node.Type() != ast.BoolType:
		return "true or false"
	}
	return ""
}

// quoted returns the text of a scalar for an error, "" for another node.
func quoted(node ast.Node) string {
	if _, scalar := node.(ast.ScalarNode); !scalar {
		return ""
	}
	return fmt.Sprintf("%q is wrong: ", node.GetToken().Value)
}
