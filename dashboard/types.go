package dashboard

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"ashlar/jsonrpc/schema"
)

// maxDepth bounds how deep the members of a value are listed.
const maxDepth = 4

// typeLine is one row in the description of a value: the value itself, or a member of it.
type typeLine struct {
	Name     string
	Depth    int // 0 for the value itself
	Type     string
	Required bool
	About    string
}

// typeTable is the data of the template types.
type typeTable struct {
	Label string
	Lines []typeLine
}

func newTypeTable(label string, lines []typeLine) typeTable { return typeTable{label, lines} }

// typeLines describes a value and its members.
func typeLines(name, about string, required bool, s *schema.Schema) []typeLine {
	if about == "" {
		about = s.Description
	}
	return appendMembers([]typeLine{{Name: name, Type: typeName(s), Required: required, About: about}}, s, 1)
}

// appendMembers appends the members of an object, of the items of an array, or of the
// choices of a value.
func appendMembers(lines []typeLine, s *schema.Schema, depth int) []typeLine {
	if s == nil || depth > maxDepth {
		return lines
	}
	for _, name := range memberNames(s) {
		member := s.Properties[name]
		lines = append(lines, typeLine{name, depth, typeName(member), slices.Contains(s.Required, name), member.Description})
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

// memberNames returns the names of an object's members, those that are required first.
func memberNames(s *schema.Schema) []string {
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

// typeName names the type of a value in a few words.
func typeName(s *schema.Schema) string {
	switch {
	case s == nil:
		return "any value"
	case len(s.Enum) > 0:
		return strings.Join(quoted(s.Enum), ", ")
	case len(s.AnyOf) > 0:
		return choicesName(s.AnyOf)
	case s.Type == "array" && s.Items != nil:
		return "array of " + typeName(s.Items)
	case s.Type == "object" && s.AdditionalProperties != nil && len(s.Properties) == 0:
		return "object of " + typeName(s.AdditionalProperties)
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
		name := typeName(choice)
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
