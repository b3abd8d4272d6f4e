package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"ashlar/account"
)

// maxFormBytes is more than the longest lists of rules take.
const maxFormBytes = 256 << 10

// form is what a page asks for, what was typed into it, and what is wrong with that.
type form struct {
	Problem string // of the form, where it is no one field's
	fields  []*field
}

// field is one value of a form, or several where it is a list of choices.
type field struct {
	Name     string
	Label    string
	Hint     string
	Kind     string // type of an input; textarea, select or checks
	Complete string // autocomplete, as HTML has it
	Optional bool
	Unmarked bool // that it is optional goes without saying
	Rows     int  // of a textarea
	Choices  []choice
	Value    string
	Values   []string // of checks
	Problem  string
}

// choice is one of several values.
type choice struct{ Value, Label string }

// The kinds of fields that are no inputs.
const (
	kindText   = "textarea"
	kindSelect = "select"
	kindChecks = "checks"
	kindSecret = "password"
)

// Chosen says whether a choice is taken, for templates.
func (f *field) Chosen(value string) bool {
	return f.Kind == kindChecks && slices.Contains(f.Values, value) || f.Kind != kindChecks && f.Value == value
}

// Describes lists the IDs of what explains a field, for templates.
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

// passwordField asks for a password that somebody is to have from now on.
func passwordField(label string) *field {
	return &field{
		Name: "password", Label: label, Kind: kindSecret, Complete: "new-password",
		Hint: "Ten characters or more. A few words that are unusual together are best.",
	}
}

// Fields lists the fields in order, for templates.
func (f *form) Fields() []*field { return f.fields }

// Field is one of them; nil where there is none.
func (f *form) Field(name string) *field {
	if i := slices.IndexFunc(f.fields, func(one *field) bool { return one.Name == name }); i >= 0 {
		return f.fields[i]
	}
	return nil
}

// Wrong lists the fields that something is wrong with, for templates.
func (f *form) Wrong() (wrong []*field) {
	for _, one := range f.fields {
		if one.Problem != "" {
			wrong = append(wrong, one)
		}
	}
	return wrong
}

// ok says whether nothing is wrong.
func (f *form) ok() bool { return f.Problem == "" && len(f.Wrong()) == 0 }

// value is what was typed into a field.
func (f *form) value(name string) string {
	if one := f.Field(name); one != nil {
		return one.Value
	}
	return ""
}

// lines is what was typed into a field of several lines, or chosen, without what is empty.
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

// fill sets what a form shows before somebody types.
func (f *form) fill(name, value string) {
	if one := f.Field(name); one != nil {
		one.Value = value
	}
}

// fail says what is wrong with a field, or with the form where it has no such field.
func (f *form) fail(name, problem string) {
	if one := f.Field(name); one != nil {
		one.Problem = problem
		return
	}
	f.Problem = problem
}

// read takes what was typed. What is not there and must be is wrong.
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

// readChecks takes what was chosen. What is no choice is wrong: where one fewer may mean
// that more is allowed, it cannot be left out.
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

// offers says whether a value is one of the choices.
func (f *field) offers(value string) bool {
	return slices.ContainsFunc(f.Choices, func(c choice) bool { return c.Value == value })
}

// refused turns an error about something that was typed into what is wrong with its
// field; any other error is returned.
func (f *form) refused(err error) error {
	var invalid *account.Invalid
	if !errors.As(err, &invalid) {
		return err
	}
	f.fail(string(invalid.Field), sentence(invalid.Problem))
	return nil
}

// sentence writes an error as one.
func sentence(text string) string {
	if text == "" {
		return text
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
