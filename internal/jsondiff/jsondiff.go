// Package jsondiff says where two JSON values differ.
package jsondiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Difference is one place where two values are not the same.
type Difference struct {
	Path string // like .transactions[3].gas; empty for the whole value
	A, B any    // the values there; Absent where there is none
}

func (d Difference) String() string {
	path := d.Path
	if path == "" {
		path = "the whole"
	}
	return fmt.Sprintf("%s: %s against %s", path, show(d.A), show(d.B))
}

// Absent stands for a member that an object does not have.
type Absent struct{}

// Decode decodes one JSON value; numbers keep their digits.
func Decode(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return v, nil
}

// Values compares two decoded values and returns the places where they differ,
// in the order of their paths. Members of objects have no order, elements of
// arrays have.
func Values(a, b any) []Difference { return values(nil, "", a, b) }

func values(out []Difference, path string, a, b any) []Difference {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			for _, k := range members(a, b) {
				out = values(out, path+"."+k, member(a, k), member(b, k))
			}
			return out
		}
	case []any:
		if b, ok := b.([]any); ok && len(a) == len(b) {
			for i := range a {
				out = values(out, fmt.Sprintf("%s[%d]", path, i), a[i], b[i])
			}
			return out
		}
	}
	if !reflect.DeepEqual(a, b) {
		out = append(out, Difference{path, a, b})
	}
	return out
}

// Shapes compares only what kind of values there are: the members of objects
// and whether something is a string, a number, a boolean or null. The length of
// an array is free; each element of b has the shape of one of a, where a has any.
func Shapes(a, b any) []Difference { return shapes(nil, "", a, b) }

func shapes(out []Difference, path string, a, b any) []Difference {
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			for _, k := range members(a, b) {
				out = shapes(out, path+"."+k, member(a, k), member(b, k))
			}
			return out
		}
	case []any:
		if b, ok := b.([]any); ok {
			for i := range b {
				if len(a) > 0 && !slices.ContainsFunc(a, func(e any) bool { return len(Shapes(e, b[i])) == 0 }) {
					out = shapes(out, fmt.Sprintf("%s[%d]", path, i), a[0], b[i])
				}
			}
			return out
		}
	}
	if reflect.TypeOf(a) != reflect.TypeOf(b) {
		out = append(out, Difference{path, a, b})
	}
	return out
}

func members(a, b map[string]any) []string {
	names := make([]string, 0, len(a))
	for k := range a {
		names = append(names, k)
	}
	for k := range b {
		if _, both := a[k]; !both {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return names
}

func member(object map[string]any, name string) any {
	if v, ok := object[name]; ok {
		return v
	}
	return Absent{}
}

func show(v any) string {
	if _, absent := v.(Absent); absent {
		return "nothing"
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	if len(raw) > 200 {
		return fmt.Sprintf("%s… (%d bytes)", raw[:200], len(raw))
	}
	return string(raw)
}
