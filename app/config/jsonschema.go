package config

import (
	"encoding/json"
	"io"
	"reflect"
	"time"

	"ashlar/family"
	"ashlar/history/retention"
)

// WriteSchema writes a JSON Schema of ashlar.yaml, with which editors complete entries and
// mark wrong ones.
func WriteSchema(out io.Writer, families family.Families) error {
	schema := group(Describe(families))
	schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	schema["title"] = "ashlar.yaml"
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(schema)
}

// group returns the schema of a mapping with the given entries.
func group(entries []Entry) map[string]any {
	schema := map[string]any{"type": []string{"object", "null"}, "additionalProperties": false}
	properties := make(map[string]any)
	for _, e := range entries {
		if e.Name == "NAME" || e.Name == "METHOD" {
			schema["additionalProperties"] = e.schema()
		} else {
			properties[e.Name] = e.schema()
		}
	}
	if len(properties) > 0 {
		schema["properties"] = properties
	}
	return schema
}

func (e *Entry) schema() map[string]any {
	schema := ofType(e.kind)
	if e.Group != nil {
		schema = group(e.Group)
	}
	if e.Meaning != "" {
		schema["description"] = e.Meaning
	}
	return schema
}

// ofType returns the schema of a value. An empty value stands for the default.
func ofType(kind reflect.Type) map[string]any {
	switch {
	case kind == nil:
		return map[string]any{}
	case kind.Kind() == reflect.Pointer:
		return ofType(kind.Elem())
	case kind == reflect.TypeFor[time.Duration]():
		return map[string]any{"type": []string{"string", "integer", "null"}, "pattern": `^[0-9.]+(ns|us|µs|ms|s|m|h)([0-9.]+(ns|us|µs|ms|s|m|h))*$|^0$`}
	case kind == reflect.TypeFor[Bytes](), kind == reflect.TypeFor[retention.Span]():
		return map[string]any{"type": []string{"string", "integer", "null"}}
	}
	switch kind.Kind() {
	case reflect.Bool:
		return map[string]any{"type": []string{"boolean", "null"}}
	case reflect.Int, reflect.Uint64:
		return map[string]any{"type": []string{"integer", "null"}}
	case reflect.Float64:
		return map[string]any{"type": []string{"number", "null"}}
	case reflect.Slice:
		if kind.Elem().Kind() == reflect.Struct { // written as texts or mappings
			return map[string]any{"type": []string{"array", "string", "object", "null"}}
		}
		return map[string]any{"type": []string{"array", "string", "null"}, "items": map[string]any{"type": "string"}}
	default:
		return map[string]any{"type": []string{"string", "null"}}
	}
}
