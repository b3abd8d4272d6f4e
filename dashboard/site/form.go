package site

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"ashlar/account"
)

// maxFormBytes is larger than any form with the longest allowed rules, maxStrangersForm than any
// that a visitor can send who is not signed in. A form is in memory while it arrives, where nothing
// counts it.
const (
	maxFormBytes     = 256 << 10
	maxStrangersForm = 16 << 10
)

// Form is a form of a page: its fields, the typed values, and the problems with them.
type Form struct {
	Problem string   // a problem that does not belong to one field
	Fields  []*Field // in order
}

// Field is one value of a form, or several if it is a list of choices.
type Field struct {
	Name     string
	Label    string
	Hint     string
	Kind     string // type of an input; textarea, select or checks
	Complete string // HTML's autocomplete attribute
	Optional bool
	Unmarked bool // do not mark the field as optional
	Once     bool // the value is a code that counts once, so no page repeats it
	Rows     int  // of a textarea
	Choices  []Choice
	// Suggestions are values to pick from; others can be typed too.
	Suggestions []string
	Type        string // of the value, shown beside the label; may be empty
	Value       string
	Values      []string // of checks
	Problem     string
}

// Choice is one option of a field.
type Choice struct{ Value, Label string }

// The kinds of fields that are not HTML inputs.
const (
	KindText   = "textarea"
	KindSelect = "select"
	KindChecks = "checks"
	KindSecret = "password"
)

// Chosen reports whether a choice is selected.
func (f *Field) Chosen(value string) bool {
	return f.Kind == KindChecks && slices.Contains(f.Values, value) || f.Kind != KindChecks && f.Value == value
}

// Secret reports whether pages must not repeat what was typed.
func (f *Field) Secret() bool { return f.Kind == KindSecret || f.Once }

// Describes lists the IDs of the elements that explain a field.
func (f *Field) Describes() string {
	var ids []string
	if f.Hint != "" {
		ids = append(ids, f.Name+"-hint")
	}
	if f.Problem != "" {
		ids = append(ids, f.Name+"-error")
	}
	return strings.Join(ids, " ")
}

func NewForm(fields ...*Field) *Form { return &Form{Fields: fields} }

// PasswordField asks for a new password.
func PasswordField(label string) *Field {
	return &Field{
		Name: "password", Label: label, Kind: KindSecret, Complete: "new-password",
		Hint: "Ten characters or more. A few words that are unusual together are best.",
	}
}

// FieldTypedName is the name of the field of TypedName.
const FieldTypedName = "name"

// TypedName asks for the name of something before it is deleted, so that nothing is deleted by
// a slip.
func TypedName(name string) *Field {
	return &Field{Name: FieldTypedName, Label: "What to delete", Kind: "text", Complete: "off", Hint: "Type " + name + " to confirm."}
}

// Field returns the field with a name, or nil.
func (f *Form) Field(name string) *Field {
	if i := slices.IndexFunc(f.Fields, func(one *Field) bool { return one.Name == name }); i >= 0 {
		return f.Fields[i]
	}
	return nil
}

// Wrong lists the fields with problems.
func (f *Form) Wrong() (wrong []*Field) {
	for _, one := range f.Fields {
		if one.Problem != "" {
			wrong = append(wrong, one)
		}
	}
	return wrong
}

// OK reports whether the form has no problems.
func (f *Form) OK() bool { return f.Problem == "" && len(f.Wrong()) == 0 }

// Value returns the typed value of a field.
func (f *Form) Value(name string) string {
	if one := f.Field(name); one != nil {
		return one.Value
	}
	return ""
}

// Lines returns the non-empty lines of a field, or its selected choices.
func (f *Form) Lines(name string) (lines []string) {
	one := f.Field(name)
	if one == nil {
		return nil
	}
	if one.Kind == KindChecks {
		return one.Values
	}
	return strings.FieldsFunc(one.Value, func(r rune) bool { return r == '\n' || r == '\r' || r == ',' || r == ' ' || r == '\t' })
}

// Fill sets the initial value of a field.
func (f *Form) Fill(name, value string) {
	if one := f.Field(name); one != nil {
		one.Value = value
	}
}

// Fail records a problem with a field, or with the form if it has no such field.
func (f *Form) Fail(name, problem string) {
	if one := f.Field(name); one != nil {
		one.Problem = problem
		return
	}
	f.Problem = problem
}

// Read reads the values of a request. A required field that is missing is a problem.
func (f *Form) Read(r *http.Request) {
	for _, one := range f.Fields {
		if one.Kind == KindChecks {
			one.readChecks(r.PostForm[one.Name])
			continue
		}
		one.Value = r.PostForm.Get(one.Name)
		if one.Kind != KindSecret {
			one.Value = strings.TrimSpace(one.Value)
		}
		switch {
		case one.Value == "" && !one.Optional:
			one.Problem = "This field is required."
		case one.Kind == KindSelect && !one.Offers(one.Value):
			one.Problem = "Choose one of these."
		}
	}
}

// readChecks reads the selected choices. An unknown choice is a problem: ignoring it could
// permit more than the user intended.
func (f *Field) readChecks(values []string) {
	f.Values = nil
	for _, value := range values {
		if f.Offers(value) {
			f.Values = append(f.Values, value)
		} else {
			f.Problem = fmt.Sprintf("%q is not one of these: choose again.", value)
		}
	}
}

// Offers reports whether a value is one of the choices.
func (f *Field) Offers(value string) bool {
	return slices.ContainsFunc(f.Choices, func(c Choice) bool { return c.Value == value })
}

// Refused records an error about a value as a problem with its field, and returns any other
// error.
func (f *Form) Refused(err error) error {
	var invalid *account.Invalid
	if !errors.As(err, &invalid) {
		return err
	}
	f.Fail(string(invalid.Field), Sentence(invalid.Problem))
	return nil
}

// Sentence turns an error text into a sentence.
func Sentence(text string) string {
	if text == "" {
		return text
	}
	return Capital(text) + "."
}

// Advised returns the text of an error that keeps a visitor out, with what to do about it.
func Advised(err error) string {
	text := Sentence(err.Error())
	switch {
	case errors.Is(err, account.ErrNoInvitation):
		text += " Ask the person who invited you for another one."
	case errors.Is(err, account.ErrClosed):
		text += " Ask the operator of this service for an account."
	}
	return text
}

// Settle replaces a value that is not among the choices by the preferred one, or else by
// the first.
func (f *Field) Settle(preferred string) {
	switch {
	case f.Offers(f.Value):
	case f.Offers(preferred):
		f.Value = preferred
	case len(f.Choices) > 0:
		f.Value = f.Choices[0].Value
	default:
		f.Value = ""
	}
}

// ReadNumber reads an optional number.
func ReadNumber(f *Form, name string, bits int) uint64 {
	text := f.Value(name)
	if text == "" {
		return 0
	}
	n, err := strconv.ParseUint(text, 10, bits)
	if err != nil || n == 0 {
		f.Fail(name, fmt.Sprintf("Expected a whole number from 1 to %s, or leave this empty.", Count(uint64(1)<<bits-1)))
	}
	return n
}
