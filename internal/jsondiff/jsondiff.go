// Package jsondiff finds the differences between two JSON values.
package jsondiff

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
)

// Difference is a place at which two values differ.
type Difference struct {
	Path string // such as .transactions[3].gas; empty for the whole value
	A, B any    // the values; Absent if missing
}

func (d Difference) String() string {
	path := d.Path
	if path == "" {
		path = "the whole"
	}
	return fmt.Sprintf("%s: %s against %s", path, show(d.A), show(d.B))
}

// Absent stands for a missing member or element.
type Absent struct{}

// Decode decodes a single JSON value. Numbers keep their digits.
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

// Values compares two decoded values and returns their differences in the order of paths. The
// order of members in objects is ignored, that of elements in arrays is not.
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

// Shapes compares only the types of values: the members of objects, and whether a value is a
// string, number, boolean or null. Arrays may differ in length; each element of b must have the
// shape of some element of a, if a has any.
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
