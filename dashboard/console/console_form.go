package console

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ashlar/dashboard/site"
	"ashlar/jsonrpc"
	"ashlar/jsonrpc/schema"
)

// paramsForm is the console's form for the parameters of a method, made of its description.
type paramsForm struct {
	method *jsonrpc.Method
	form   *site.Form
	Groups []paramGroup
}

// paramGroup is the fields of one parameter: one field, or one for each member of an object.
type paramGroup struct {
	Name    string
	Summary string
	Members bool // the fields are members of an object
	Fields  []*site.Field
	More    []*site.Field // members that the example leaves out, folded

	schema *schema.Schema
	index  int
}

// newParamsForm returns the form of a method, filled in with its example.
func newParamsForm(ctx context.Context, n *site.Network, m *jsonrpc.Method) *paramsForm {
	p := &paramsForm{method: m, form: site.NewForm()}
	values := make(map[int]json.RawMessage)
	if arguments, err := m.Example(ctx); err == nil { // else no data for an example
		for i, a := range arguments {
			values[i], _ = json.Marshal(a.Value) // examples can be encoded
		}
	}
	known := suggestions(ctx, n)
	for i, param := range m.Params {
		p.Groups = append(p.Groups, p.group(i, &param, values[i], known))
	}
	return p
}

func (p *paramsForm) group(i int, param *jsonrpc.Param, value json.RawMessage, known map[string][]string) paramGroup {
	g := paramGroup{Name: param.Name, Summary: param.Summary, schema: param.Schema, index: i}
	name := fmt.Sprintf("p%d", i)
	if len(param.Schema.Properties) == 0 {
		f := paramField(name, param.Name, param.Schema, param.Required, known)
		f.Hint, f.Value = param.Summary, shownValue(value)
		g.Fields = []*site.Field{f}
		p.form.Fields = append(p.form.Fields, f)
		return g
	}
	g.Members = true
	var members map[string]json.RawMessage
	_ = json.Unmarshal(value, &members) // without an example, no member has a value
	for _, member := range site.MemberNames(param.Schema) {
		f := paramField(name+"-"+member, member, param.Schema.Properties[member], slices.Contains(param.Schema.Required, member), known)
		f.Value = shownValue(members[member])
		if f.Value == "" && f.Optional {
			g.More = append(g.More, f)
		} else {
			g.Fields = append(g.Fields, f)
		}
		p.form.Fields = append(p.form.Fields, f)
	}
	return g
}

// paramField returns the field of a value.
func paramField(name, label string, s *schema.Schema, required bool, known map[string][]string) *site.Field {
	f := &site.Field{Name: name, Label: label, Kind: "text", Complete: "off", Optional: !required, Type: site.TypeName(s)}
	switch {
	case s.Type == "boolean":
		f.Kind, f.Choices = site.KindSelect, []site.Choice{{Value: "true", Label: "true"}, {Value: "false", Label: "false"}}
	case len(s.Enum) > 0:
		f.Kind = site.KindSelect
		for _, value := range s.Enum {
			f.Choices = append(f.Choices, site.Choice{Value: value, Label: value})
		}
	case !isScalar(s):
		f.Kind, f.Rows = site.KindText, 3
	default:
		f.Suggestions = suggested(s, known)
	}
	if f.Kind == site.KindSelect && f.Optional {
		f.Choices = slices.Insert(f.Choices, 0, site.Choice{Value: "", Label: "not given"})
	}
	return f
}

// isScalar reports whether a value can be typed into one line: it is, or can be, something
// else than an array or an object.
func isScalar(s *schema.Schema) bool {
	return accepts(s, "string") || accepts(s, "integer") || accepts(s, "number")
}

// accepts reports whether values of a JSON type match a schema, as far as its types say.
func accepts(s *schema.Schema, kind string) bool {
	if len(s.AnyOf) > 0 {
		return slices.ContainsFunc(s.AnyOf, func(one *schema.Schema) bool { return accepts(one, kind) })
	}
	return s.Type == kind || s.Type == "" || s.Type == "string" && kind == "string"
}

// suggested returns the values to pick from: the values of enumerations, and what examples
// of this network show for values of the same name.
func suggested(s *schema.Schema, known map[string][]string) (all []string) {
	for _, one := range append([]*schema.Schema{s}, flat(s)...) {
		all = append(all, one.Enum...)
		all = append(all, known[one.Name]...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// flat returns the choices of a schema, and theirs.
func flat(s *schema.Schema) (all []*schema.Schema) {
	for _, one := range s.AnyOf {
		all = append(append(all, one), flat(one)...)
	}
	return all
}

// maxSuggestions is the maximum number of values to pick from, of one kind.
const maxSuggestions = 12

// suggestions collects values by the name of their schema from the examples of all methods
// of a network. Examples are made of the network's newest blocks.
func suggestions(ctx context.Context, n *site.Network) map[string][]string {
	known := make(map[string][]string)
	for _, m := range n.Methods {
		for _, p := range m.Params {
			if p.Example == nil || p.From != "" {
				continue
			}
			value, err := p.Example(ctx)
			if err != nil {
				continue // no data for an example
			}
			raw, _ := json.Marshal(value) // examples can be encoded
			collect(known, p.Schema, raw)
		}
	}
	return known
}

// collect adds the strings in a value to those known of their schema's name.
func collect(known map[string][]string, s *schema.Schema, raw json.RawMessage) {
	if s == nil {
		return
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		for _, one := range append([]*schema.Schema{s}, flat(s)...) {
			if one.Name == "" || one.Pattern == "" || len(text) > maxSuggestion || !one.Matches(text) || one.Matches("0x1") {
				continue // numbers of different things have the same type
			}
			if values := known[one.Name]; !slices.Contains(values, text) && len(values) < maxSuggestions {
				known[one.Name] = append(values, text)
			}
		}
		return
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			collect(known, s.Properties[name], members[name])
		}
	}
}

// maxSuggestion is the maximum length of a value to pick from, in bytes.
const maxSuggestion = 100

// shownValue returns a JSON value as it is typed: a string without its quotes.
func shownValue(raw json.RawMessage) string {
	var text string
	if len(raw) == 0 || string(raw) == "null" {
		return ""
	}
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var indented bytes.Buffer
	if json.Indent(&indented, raw, "", "  ") != nil {
		return string(raw)
	}
	return indented.String()
}

// params returns what was typed as the params of a request. Problems are recorded in the
// fields.
func (p *paramsForm) params() json.RawMessage {
	values := make([]json.RawMessage, len(p.Groups))
	last := 0
	for i, g := range p.Groups {
		if values[i] = g.value(); values[i] != nil {
			last = i + 1
		}
	}
	if p.method.ByName {
		members := make(map[string]json.RawMessage)
		for i, g := range p.Groups {
			if values[i] != nil {
				members[g.Name] = values[i]
			}
		}
		raw, _ := json.Marshal(members) // the values are valid
		return raw
	}
	values = values[:last]
	for i := range values {
		if values[i] == nil {
			values[i] = json.RawMessage("null")
		}
	}
	raw, _ := json.Marshal(values) // the values are valid
	return raw
}

// value returns what was typed for one parameter, or nil if nothing was.
func (g *paramGroup) value() json.RawMessage {
	if !g.Members {
		return encoded(g.Fields[0], g.schema)
	}
	members := make(map[string]json.RawMessage)
	for _, f := range slices.Concat(g.Fields, g.More) {
		if raw := encoded(f, g.schema.Properties[f.Label]); raw != nil {
			members[f.Label] = raw
		}
	}
	if len(members) == 0 && len(g.schema.Required) == 0 && g.index > 0 {
		return nil
	}
	raw, _ := json.Marshal(members) // the values are valid
	return raw
}

// encoded returns what was typed as JSON, or nil if nothing was. Text is a string unless the
// schema says otherwise; a decimal number becomes hexadecimal where the schema wants that.
func encoded(f *site.Field, s *schema.Schema) json.RawMessage {
	text := strings.TrimSpace(f.Value)
	switch {
	case text == "":
		return nil
	case strings.ContainsAny(text[:1], `[{"`):
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
		f.Problem = "This is not valid JSON."
		return nil
	case text == "null" && accepts(s, "null"), (text == "true" || text == "false") && accepts(s, "boolean"):
		return json.RawMessage(text)
	case accepts(s, "integer") || accepts(s, "number"):
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	if !accepts(s, "string") {
		f.Problem = "Expected " + site.TypeName(s) + ", as JSON."
		return nil
	}
	if hex, ok := hexadecimal(text, s); ok {
		text = hex
	}
	raw, _ := json.Marshal(text) // a string can be encoded
	return raw
}

// hexadecimal returns a decimal number in the form that a schema wants, and false if the text
// is none, or matches the schema as it is.
func hexadecimal(text string, s *schema.Schema) (string, bool) {
	var n uint64
	if _, err := fmt.Sscanf(text, "%d", &n); err != nil || fmt.Sprint(n) != text {
		return "", false
	}
	hex := fmt.Sprintf("%#x", n)
	all := append([]*schema.Schema{s}, flat(s)...)
	matches := func(value string) bool {
		return slices.ContainsFunc(all, func(one *schema.Schema) bool { return one.Pattern != "" && one.Matches(value) })
	}
	return hex, !matches(text) && matches(hex)
}
