package site

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"ashlar/jsonrpc/schema"
)

// maxDepth bounds how deep the members of a value are listed.
const maxDepth = 4

// TypeLine is one row in the description of a value: the value itself, or a member of it.
type TypeLine struct {
	Name     string
	Depth    int // 0 for the value itself
	Type     string
	Required bool
	About    string
}

// typeTable is the data of the template types.
type typeTable struct {
	Label string
	Lines []TypeLine
}

func newTypeTable(label string, lines []TypeLine) typeTable { return typeTable{label, lines} }

// TypeLines describes a value and its members.
func TypeLines(name, about string, required bool, s *schema.Schema) []TypeLine {
	if about == "" {
		about = s.Description
	}
	return appendMembers([]TypeLine{{Name: name, Type: TypeName(s), Required: required, About: about}}, s, 1)
}

// appendMembers appends the members of an object, of the items of an array, or of the
// choices of a value.
func appendMembers(lines []TypeLine, s *schema.Schema, depth int) []TypeLine {
	if s == nil || depth > maxDepth {
		return lines
	}
	for _, name := range MemberNames(s) {
		member := s.Properties[name]
		lines = append(lines, TypeLine{name, depth, TypeName(member), slices.Contains(s.Required, name), member.Description})
		lines = appendMembers(lines, member, depth+1)
	}
	lines = appendMembers(lines, s.Items, depth)
	for _, choice := range s.AnyOf {
		lines = appendMembers(lines, choice, depth)
	}
	if s.AdditionalProperties != nil {
		lines = appendMembers(lines, s.AdditionalProperties, depth)
	}
	return lines
}

// MemberNames returns the names of an object's members, those that are required first.
func MemberNames(s *schema.Schema) []string {
	names := slices.Sorted(maps.Keys(s.Properties))
	slices.SortStableFunc(names, func(a, b string) int {
		return order(slices.Contains(s.Required, b)) - order(slices.Contains(s.Required, a))
	})
	return names
}

func order(first bool) int {
	if first {
		return 1
	}
	return 0
}

// TypeName names the type of a value in a few words.
func TypeName(s *schema.Schema) string {
	switch {
	case s == nil:
		return "any value"
	case len(s.Enum) > 0:
		return strings.Join(quoted(s.Enum), ", ")
	case len(s.AnyOf) > 0:
		return choicesName(s.AnyOf)
	case s.Type == "array" && s.Items != nil:
		return "array of " + TypeName(s.Items)
	case s.Type == "object" && s.AdditionalProperties != nil && len(s.Properties) == 0:
		return "object of " + TypeName(s.AdditionalProperties)
	case s.Type == "integer" && s.Minimum != nil && *s.Minimum == 0:
		return "number"
	case s.Type == "string" && s.Name != "":
		return s.Name
	case s.Type == "":
		return "any value"
	}
	return s.Type
}

// choicesName names the types of choices, null last and each once.
func choicesName(choices []*schema.Schema) string {
	var names []string
	null := false
	for _, choice := range choices {
		name := TypeName(choice)
		if choice.Type == "null" {
			null = true
		} else if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if null {
		names = append(names, "null")
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

func quoted(values []string) []string {
	all := make([]string, len(values))
	for i, value := range values {
		all[i] = strconv.Quote(value)
	}
	return all
}
