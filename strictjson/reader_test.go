package strictjson

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
)

// letter is what the tests read: an object with an optional member of each kind, and a
// text that is required.
type letter struct {
	text   string
	texts  []string
	number uint64
	signed int64
	flag   bool
	inner  *letter
	null   bool
}

func readLetter(r *Reader) (l letter, err error) {
	err = r.Object(func(name string) (err error) {
		switch name {
		case "text":
			l.text, err = r.Text()
		case "texts":
			err = r.Array(func(int) error {
				text, err := r.TextOf("a short text")
				l.texts = append(l.texts, text)
				return err
			})
		case "number":
			l.number, err = r.Uint64()
		case "signed":
			l.signed, err = r.Int64()
		case "flag":
			l.flag, err = r.Bool()
		case "even":
			err = r.Scalar("an even digit", func(text string, _ bool) bool { return strings.Contains("02468", text) })
		case "inner":
			if l.null, err = r.Null(); err == nil && !l.null {
				var inner letter
				inner, err = readLetter(r)
				l.inner = &inner
			}
		default:
			err = r.Skip()
		}
		return err
	}, "text")
	return l, err
}

func read(text string, most int64) (letter, error) {
	r := NewReader(strings.NewReader(text), most)
	if err := r.Next(); err != nil {
		return letter{}, err
	}
	return readLetter(r)
}

// members are so many members of an object, each with a name of its own.
func members(count int) string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf(`"m%d":0`, i)
	}
	return strings.Join(all, ",")
}

func nested(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

func TestValuesAreRead(t *testing.T) {
	for _, test := range []struct {
		text string
		want letter
	}{
		{`{"text":"a"}`, letter{text: "a"}},
		{` { "texts" : [ "" , "1" ] , "text" : "\u0061\ud83d\ude00" , "number" : 18446744073709551615 } `,
			letter{text: "a\U0001f600", texts: []string{"", "1"}, number: 1<<64 - 1}},
		{`{"other":{"text":[1,{"a":null}],"b":true},"text":"a","more":-1.5e3}`, letter{text: "a"}},
		{`{"text":"a","inner":null}`, letter{text: "a", null: true}},
		{`{"text":"a","inner":{"text":"b"}}`, letter{text: "a", inner: &letter{text: "b"}}},
		{`{"text":"a","texts":[]}`, letter{text: "a"}},
		{`{"text":"a","signed":-32601,"flag":true}`, letter{text: "a", signed: -32601, flag: true}},
		{`{"text":"a","even":4}`, letter{text: "a"}},
		{`{"text":"a","even":"8"}`, letter{text: "a"}},
		{`{"text":"a",` + members(40_000) + `}`, letter{text: "a"}},
		{`{"other":` + nested(5000) + `,"text":"a"}`, letter{text: "a"}},
	} {
		got, err := read(test.text, 1<<20)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%.80s: read as %+v, %v, expected %+v", test.text, got, err, test.want)
		}
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, test := range []struct{ text, place, want string }{
		{`[]`, "", "found an array, expected an object"},
		{`null`, "", "found null, expected an object"},
		{`{}`, "text", "missing"},
		{`{"text":null}`, "text", "found null, expected a string"},
		{`{"text":17}`, "text", "found the number 17, expected a string"},
		{`{"text":{}}`, "text", "found an object, expected a string"},
		{`{"text":true}`, "text", "found true, expected a string"},
		{`{"text":"a","text":"a"}`, "text", "given twice"},
		{`{"other":1,"text":"a","other":1}`, "other", "given twice"},
		{`{"other":[{"a":1,"\u0061":1}],"text":"a"}`, "other[0].a", "given twice"},
		{`{"texts":["a","b",3]}`, "texts[2]", "found the number 3, expected a short text"},
		{`{"texts":{"0":"a"}}`, "texts", "found an object, expected an array"},
		{`{"inner":{"text":"a","texts":[[]]}}`, "inner.texts[0]", "found an array, expected a short text"},
		{`{"inner":{"inner":{"number":1}}}`, "inner.inner.text", "missing"},
		{`{"text":"a","number":-1}`, "number", "found the number -1, expected an integer from 0 to 2^64-1"},
		{`{"text":"a","number":1.5}`, "number", "found the number 1.5, expected"},
		{`{"text":"a","number":18446744073709551616}`, "number", "found the number 18446744073709551616, expected"},
		{`{"text":"a","number":"1"}`, "number", `found the string "1", expected`},
		{`{"text":"a","signed":1.5}`, "signed", "found the number 1.5, expected an integer"},
		{`{"text":"a","flag":0}`, "flag", "found the number 0, expected true or false"},
		{`{"text":"a","flag":null}`, "flag", "found null, expected true or false"},
		{`{"text":"a","even":3}`, "even", "found the number 3, expected an even digit"},
		{`{"text":"a","even":[]}`, "even", "found an array, expected an even digit"},
		{`{"text":"a"`, "", "cut short"},
		{`{"text":"a`, "text", "cut short"},
		{`{"texts":["a",`, "texts", "cut short"},
		{`{"text" "a"}`, "text", "not JSON"},
		{`{"text":"a",}`, "", "not JSON"},
		{`{"text":tru}`, "text", "not JSON"},
		{"{\"text\":\"\xff\"}", "text", "not JSON: invalid UTF-8"},
		{`{"text":"\ud800"}`, "text", "not JSON"},
		{`{"text":"` + long + `"}`, "text", "too long: a value may have 2000 bytes"},
		{`{"other":{"a":["` + strings.Join(strings.Split(long, ""), `","`) + `"]}}`, "other.a[495]", "too long"},
	} {
		_, err := read(test.text, 2000)
		var wrong *Error
		if !errors.As(err, &wrong) {
			t.Errorf("%.50s: the error is %v, expected one with a place", test.text, err)
			continue
		}
		if wrong.Place != test.place || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%.50s: the error is %q, expected %q at %q", test.text, err, test.want, test.place)
		}
	}
}

func TestErrorsAreShort(t *testing.T) {
	name := strings.Repeat("n", 1000)
	for _, text := range []string{
		nested(100_000),
		strings.Repeat(`{"inner":`, 5000),
		`{"` + name + `":1,"` + name + `":1}`,
		`{"number":"` + name + `"}`,
	} {
		_, err := read(text, 1<<20)
		if err == nil || len(err.Error()) > 300 {
			t.Errorf("%.50s: the error is %v", text, err)
		}
	}
}

// TestRequiredMembers: each of them must be there, also if another is.
func TestRequiredMembers(t *testing.T) {
	for text, missing := range map[string]string{`{}`: "a", `{"b":1}`: "a", `{"a":1}`: "b", `{"b":1,"a":1}`: ""} {
		r := NewReader(strings.NewReader(text), 100)
		err := r.Next()
		if err == nil {
			err = r.Object(func(string) error { return r.Skip() }, "a", "b")
		}
		var wrong *Error
		if errors.As(err, &wrong); missing == "" && err != nil || missing != "" && (wrong == nil || wrong.Place != missing) {
			t.Errorf("%s: the error is %v, expected %q to be missing", text, err, missing)
		}
	}
}

// TestScalarsHaveTheirKind: check learns whether a value is a string.
func TestScalarsHaveTheirKind(t *testing.T) {
	for text, want := range map[string]bool{`"1"`: true, `1`: false} {
		r := NewReader(strings.NewReader(text+" "), 100)
		err := r.Next()
		if err == nil {
			err = r.Scalar("1", func(text string, isString bool) bool { return text == "1" && isString == want })
		}
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSyntaxIsToldFromValues: a caller can tell a damaged text from a value that it does not want.
func TestSyntaxIsToldFromValues(t *testing.T) {
	for text, want := range map[string]bool{
		`{"text":"a"`: true, `{"text":tru}`: true, `{"text":"a","text":"a"}`: true, `{"text":"` + strings.Repeat("x", 100) + `"}`: true,
		`{}`: false, `{"text":1}`: false, `{"text":"a","number":-1}`: false,
	} {
		_, err := read(text, 50)
		if wrong := (*Error)(nil); !errors.As(err, &wrong) || wrong.Syntax != want {
			t.Errorf("%.50s: the error is %#v, expected Syntax to be %t", text, err, want)
		}
	}
}

// TestEndOfInput: only its end is io.EOF. An input that is damaged, or cannot be read on, has not ended.
func TestEndOfInput(t *testing.T) {
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		in   io.Reader
		want error // nil: any but io.EOF
	}{
		"nothing":       {strings.NewReader(""), io.EOF},
		"spaces":        {strings.NewReader(" \n"), io.EOF},
		"no JSON":       {strings.NewReader(" x"), nil},
		"a stray end":   {strings.NewReader("]"), nil},
		"a failed read": {iotest.ErrReader(broken), broken},
	} {
		r := NewReader(io.MultiReader(strings.NewReader(`{"text":"a"}`), test.in), 20)
		if err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if _, err := readLetter(r); err != nil {
			t.Fatal(err)
		}
		err := r.Next()
		if err == nil {
			_, err = readLetter(r)
		}
		if test.want == nil && (err == nil || err == io.EOF) || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%s after a value: %v, expected %v, or if that is nil, any error but io.EOF", name, err, test.want)
		}
	}
}

// TestBoundOfEachValue: a value that is too long is refused, however short those before it were.
func TestBoundOfEachValue(t *testing.T) {
	for length, want := range map[int]error{20: nil, 21: ErrTooLong} {
		text := strings.Repeat(`{"text":"a"}`, 100) + `{"text":"` + strings.Repeat("x", length-len(`{"text":""}`)) + `"}`
		r := NewReader(strings.NewReader(text), 20)
		for i := range 101 {
			err := r.Next()
			if err == nil {
				_, err = readLetter(r)
			}
			if i < 100 && err != nil || i == 100 && !errors.Is(err, want) {
				t.Fatalf("value %d, the last one of %d bytes: %v, expected %v", i, length, err, want)
			}
		}
	}
}

func TestValuesFollowEachOther(t *testing.T) {
	// Each value may have as many bytes as the limit, and the input any number.
	text := strings.Repeat(`{"text":"a"} `, 100) + "\n"
	r := NewReader(strings.NewReader(text), 20)
	values := 0
	for ; ; values++ {
		err := r.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			_, err = readLetter(r)
		}
		if err != nil {
			t.Fatalf("value %d: %v", values, err)
		}
	}
	if values != 100 {
		t.Errorf("%d values were read, expected 100", values)
	}
}
