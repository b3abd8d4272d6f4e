package strictjson

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
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
