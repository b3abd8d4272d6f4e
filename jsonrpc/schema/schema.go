// Package schema describes JSON values, in the part of JSON Schema (draft 7) that
// OpenRPC documents use. Schemas are made once, from Go, and do not change.
package schema

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
)

// Schema is a JSON Schema. A schema with a Name is written once, among the components
// of a document; everywhere else a reference takes its place.
type Schema struct {
	Name string `json:"-"`

	Title                string             `json:"title,omitempty"`
	Description          string             `json:"description,omitempty"`
	Type                 string             `json:"type,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Minimum              *int               `json:"minimum,omitempty"`
	Maximum              *int               `json:"maximum,omitempty"`
	Items                *Schema            `json:"items,omitempty"`
	Properties           map[string]*Schema `json:"properties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	AdditionalProperties *Schema            `json:"additionalProperties,omitempty"`
	AnyOf                []*Schema          `json:"anyOf,omitempty"`
}

// The schemas of values without structure.
var (
	Boolean = &Schema{Type: "boolean"}
	String  = &Schema{Type: "string"}
	Null    = &Schema{Type: "null"}
	Number  = &Schema{Type: "number"}
	// Any is any value.
	Any = &Schema{}
	// Unsigned is an integer that is not negative.
	Unsigned = Integer(0)
)

// Integer describes an integer that is at least minimum.
func Integer(minimum int) *Schema { return &Schema{Type: "integer", Minimum: &minimum} }

// Text describes a string that matches a pattern as a whole.
func Text(name, description, pattern string) *Schema {
	return &Schema{Name: name, Title: name, Description: description, Type: "string", Pattern: "^" + pattern + "$"}
}

// Enum describes a string that is one of some.
func Enum(values ...string) *Schema { return &Schema{Type: "string", Enum: values} }

// Array describes an array of items of one schema.
func Array(items *Schema) *Schema { return &Schema{Type: "array", Items: items} }

// Map describes an object that has values of one schema under names that vary.
func Map(values *Schema) *Schema { return &Schema{Type: "object", AdditionalProperties: values} }

// AnyOf describes a value that matches at least one of some schemas.
func AnyOf(schemas ...*Schema) *Schema { return &Schema{AnyOf: schemas} }

// OrNull describes a value of a schema, or null.
func OrNull(s *Schema) *Schema { return AnyOf(s, Null) }

// Members are the members of an object, by name.
type Members map[string]*Schema

// Object describes an object. Members of required are always there, those of optional
// may be missing; an object may have others besides.
func Object(required, optional Members) *Schema {
	s := &Schema{Type: "object", Required: slices.Sorted(maps.Keys(required)), Properties: make(map[string]*Schema)}
	maps.Copy(s.Properties, required)
	maps.Copy(s.Properties, optional)
	return s
}

// Named returns the schema under a name, for the components of a document.
func (s *Schema) Named(name, description string) *Schema {
	named := *s
	named.Name, named.Title, named.Description = name, name, description
	return &named
}

// Described returns a schema that says what a member of an object means, besides what its values are. A schema with a
// name stays a reference.
func (s *Schema) Described(description string) *Schema {
	if s.Name != "" {
		return &Schema{Description: description, AnyOf: []*Schema{s}}
	}
	described := *s
	described.Description = description
	return &described
}

// Matches reports whether a string matches the schema's pattern. It is not fast.
func (s *Schema) Matches(text string) bool {
	matched, err := regexp.MatchString(s.Pattern, text)
	return err == nil && matched
}

// definition is a schema that is written whole.
type definition Schema

// Definition returns the schema itself, to be encoded in the place that references
// lead to.
func (s *Schema) Definition() any { return (*definition)(s) }

// MarshalJSON implements json.Marshaler.
func (s *Schema) MarshalJSON() ([]byte, error) {
	if s.Name == "" {
		return json.Marshal(s.Definition())
	}
	return json.Marshal(struct {
		Ref string `json:"$ref"`
	}{"#/components/schemas/" + s.Name})
}

// Collect adds the schemas that have names, s and all below it, to named.
func (s *Schema) Collect(named map[string]*Schema) {
	if s == nil || s.Name != "" && named[s.Name] != nil {
		return
	}
	if s.Name != "" {
		named[s.Name] = s
	}
	s.Items.Collect(named)
	s.AdditionalProperties.Collect(named)
	for _, member := range s.Properties {
		member.Collect(named)
	}
	for _, choice := range s.AnyOf {
		choice.Collect(named)
	}
}
