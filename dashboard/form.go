package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ashlar/account"
)

// maxFormBytes is larger than any form with the longest allowed rules.
const maxFormBytes = 256 << 10

// form is a form of a page: its fields, the typed values, and the problems with them.
type form struct {
	Problem string // a problem that does not belong to one field
	fields  []*field
}

// field is one value of a form, or several if it is a list of choices.
type field struct {
	Name     string
	Label    string
	Hint     string
	Kind     string // type of an input; textarea, select or checks
	Complete string // HTML's autocomplete attribute
	Optional bool
	Unmarked bool // do not mark the field as optional
	Rows     int  // of a textarea
	Choices  []choice
	// Suggestions are values to pick from; others can be typed too.
	Suggestions []string
	Type        string // of the value, shown beside the label; may be empty
	Value       string
	Values      []string // of checks
	Problem     string
}

// choice is one option of a field.
type choice struct{ Value, Label string }

// The kinds of fields that are not HTML inputs.
const (
	kindText   = "textarea"
	kindSelect = "select"
	kindChecks = "checks"
	kindSecret = "password"
)

// Chosen reports whether a choice is selected.
func (f *field) Chosen(value string) bool {
	return f.Kind == kindChecks && slices.Contains(f.Values, value) || f.Kind != kindChecks && f.Value == value
}

// Describes lists the IDs of the elements that explain a field.
func (f *field) Describes() string {
	var ids []string
	if f.Hint != "" {
		ids = append(ids, f.Name+"-hint")
	}
	if f.Problem != "" {
		ids = append(ids, f.Name+"-error")
	}
	return strings.Join(ids, " ")
}

func newForm(fields ...*field) *form { return &form{fields: fields} }

// passwordField asks for a new password.
func passwordField(label string) *field {
	return &field{
		Name: "password", Label: label, Kind: kindSecret, Complete: "new-password",
		Hint: "Ten characters or more. A few words that are unusual together are best.",
	}
}

// Fields lists the fields in order.
func (f *form) Fields() []*field { return f.fields }

// Field returns the field with a name, or nil.
func (f *form) Field(name string) *field {
	if i := slices.IndexFunc(f.fields, func(one *field) bool { return one.Name == name }); i >= 0 {
		return f.fields[i]
	}
	return nil
}

// Wrong lists the fields with problems.
func (f *form) Wrong() (wrong []*field) {
	for _, one := range f.fields {
		if one.Problem != "" {
			wrong = append(wrong, one)
		}
	}
	return wrong
}

// ok reports whether the form has no problems.
func (f *form) ok() bool { return f.Problem == "" && len(f.Wrong()) == 0 }

// value returns the typed value of a field.
func (f *form) value(name string) string {
	if one := f.Field(name); one != nil {
		return one.Value
	}
	return ""
}

// lines returns the non-empty lines of a field, or its selected choices.
func (f *form) lines(name string) (lines []string) {
	one := f.Field(name)
	if one == nil {
		return nil
	}
	if one.Kind == kindChecks {
		return one.Values
	}
	return strings.FieldsFunc(one.Value, func(r rune) bool { return r == '\n' || r == '\r' || r == ',' || r == ' ' || r == '\t' })
}

// fill sets the initial value of a field.
func (f *form) fill(name, value string) {
	if one := f.Field(name); one != nil {
		one.Value = value
	}
}

// fail records a problem with a field, or with the form if it has no such field.
func (f *form) fail(name, problem string) {
	if one := f.Field(name); one != nil {
		one.Problem = problem
		return
	}
	f.Problem = problem
}

// read reads the values of a request. A required field that is missing is a problem.
func (f *form) read(r *http.Request) {
	for _, one := range f.fields {
		if one.Kind == kindChecks {
			one.readChecks(r.PostForm[one.Name])
			continue
		}
		one.Value = r.PostForm.Get(one.Name)
		if one.Kind != kindSecret {
			one.Value = strings.TrimSpace(one.Value)
		}
		switch {
		case one.Value == "" && !one.Optional:
			one.Problem = "This field is required."
		case one.Kind == kindSelect && !one.offers(one.Value):
			one.Problem = "Choose one of these."
		}
	}
}

// readChecks reads the selected choices. An unknown choice is a problem: ignoring it could
// permit more than the user intended.
func (f *field) readChecks(values []string) {
	f.Values = nil
	for _, value := range values {
		if f.offers(value) {
			f.Values = append(f.Values, value)
		} else {
			f.Problem = fmt.Sprintf("%q is not one of these: choose again.", value)
		}
	}
}

// offers reports whether a value is one of the choices.
func (f *field) offers(value string) bool {
	return slices.ContainsFunc(f.Choices, func(c choice) bool { return c.Value == value })
}

// refused records an error about a value as a problem with its field, and returns any other
// error.
func (f *form) refused(err error) error {
	var invalid *account.Invalid
	if !errors.As(err, &invalid) {
		return err
	}
	f.fail(string(invalid.Field), sentence(invalid.Problem))
	return nil
}

// sentence turns an error text into a sentence.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return capital(text) + "."
}
