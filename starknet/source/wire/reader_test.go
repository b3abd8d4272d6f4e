package wire

import (
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"ashlar/starknet"

	"github.com/ethereum/go-ethereum/common"
)

// letter is what the tests read: an object with an optional member of each kind.
type letter struct {
	felt   starknet.Felt
	felts  []starknet.Felt
	text   string
	number uint64
	hex    uint64
	signed int64
	hash   common.Hash
	inner  *letter
	null   bool
}

func readLetter(r *Reader) (l letter, err error) {
	err = r.Object(func(name string) (err error) {
		switch name {
		case "felt":
			l.felt, err = r.Felt()
		case "felts":
			l.felts, err = r.Felts()
		case "text":
			l.text, err = r.Text()
		case "number":
			l.number, err = r.Uint64()
		case "hex":
			l.hex, err = r.HexUint64()
		case "signed":
			l.signed, err = r.Int64()
		case "hash":
			l.hash, err = r.Hash()
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
	}, "felt")
	return l, err
}

func read(text string) (letter, error) {
	r := NewReader(strings.NewReader(text), 2000)
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

func TestValuesAreRead(t *testing.T) {
	one := starknet.FeltOf(1)
	for _, test := range []struct {
		text string
		want letter
	}{
		{`{"felt":"0x1"}`, letter{felt: one}},
		{`{"felts":["0x1","0x01"],"felt":"0x1","text":"\u0061","number":18446744073709551615,"hex":"0xffffffffffffffff"}`,
			letter{felt: one, felts: []starknet.Felt{one, one}, text: "a", number: 1<<64 - 1, hex: 1<<64 - 1}},
		{`{"other":{"felt":[1,{"a":null}],"b":true},"felt":"0x1","more":-1.5e3}`, letter{felt: one}},
		{`{"felt":"0x1","inner":null}`, letter{felt: one, null: true}},
		{`{"felt":"0x1","inner":{"felt":"0x1"}}`, letter{felt: one, inner: &letter{felt: one}}},
		{`{"felt":"0x1","felts":[]}`, letter{felt: one}},
		{`{"felt":"0x1",` + members(mostMembers-1) + `}`, letter{felt: one}},
		{`{"felt":"0x1","signed":-32601}`, letter{felt: one, signed: -32601}},
		{`{"felt":"0x1","hash":"0xf"}`, letter{felt: one, hash: common.Hash{31: 15}}},
		{`{"felt":"0x1","hash":"0xF` + strings.Repeat("0", 63) + `"}`, letter{felt: one, hash: common.Hash{0: 0xf0}}},
	} {
		got, err := read(test.text)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: read as %+v, %v, expected %+v", test.text, got, err, test.want)
		}
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	long := strings.Repeat("x", 2000)
	for _, test := range []struct{ text, place, want string }{
		{`[]`, "", "found an array, expected an object"},
		{`null`, "", "found null, expected an object"},
		{`{}`, "felt", "missing"},
		{`{"felt":null}`, "felt", "found null, expected a felt"},
		{`{"felt":17}`, "felt", "found the number 17, expected a felt"},
		{`{"felt":{}}`, "felt", "found an object, expected a felt"},
		{`{"felt":true}`, "felt", "found true, expected a felt"},
		{`{"felt":"17"}`, "felt", "otherwise than with 0x"},
		{`{"felt":"0x1","felt":"0x1"}`, "felt", "given twice"},
		{`{"other":1,"felt":"0x1","other":1}`, "other", "given twice"},
		{`{"felts":["0x1","0x2","0xz"]}`, "felts[2]", "expected a hexadecimal digit"},
		{`{"felts":["0x1",null]}`, "felts[1]", "found null, expected a felt"},
		{`{"felts":{"0":"0x1"}}`, "felts", "found an object, expected an array"},
		{`{"inner":{"felt":"0x1","felts":[[]]}}`, "inner.felts[0]", "found an array, expected a felt"},
		{`{"inner":{"inner":{"text":"a"}}}`, "inner.inner.felt", "missing"},
		{`{"felt":"0x1","number":-1}`, "number", "found -1, expected an integer from 0 to 2^64-1"},
		{`{"felt":"0x1","number":1.5}`, "number", "found 1.5, expected"},
		{`{"felt":"0x1","number":18446744073709551616}`, "number", "found 18446744073709551616, expected"},
		{`{"felt":"0x1","number":"1"}`, "number", `found the string "1", expected`},
		{`{"felt":"0x1","hex":"0x10000000000000000"}`, "hex", "expected a number below 2^64"},
		{`{"felt":"0x1","signed":1.5}`, "signed", "found 1.5, expected an integer"},
		{`{"felt":"0x1","hash":"0x"}`, "hash", "expected 0x and 1 to 64 hexadecimal digits"},
		{`{"felt":"0x1","hash":"0x` + strings.Repeat("1", 65) + `"}`, "hash", "expected 0x and 1 to 64 hexadecimal digits"},
		{`{"felt":"0x1","hash":"0xg"}`, "hash", "invalid byte"},
		{`{"felt":"0x1"`, "", "cut short"},
		{`{"felt":"0x`, "felt", "cut short"},
		{`{"felts":["0x1",`, "felts[1]", "cut short"},
		{`{"felt" "0x1"}`, "felt", "not JSON"},
		{`{"felt":"0x1",}`, "", "not JSON"},
		{`{"text":"` + long + `"}`, "text", "too long: a value may have 2000 bytes"},
		{`{"other":["` + strings.Join(strings.Split(long, ""), `","`) + `"]}`, "other", "too long"},
		{"{" + members(mostMembers+1) + "}", "m128", "too many members: an object may have 128"},
		{`{"inner":{` + members(mostMembers+1) + "}}", "inner.m128", "too many members"},
	} {
		_, err := read(test.text)
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

func TestValuesFollowEachOther(t *testing.T) {
	// Each value may have as many bytes as the limit, and the input any number.
	text := strings.Repeat(`{"felt":"0x1"} `, 100) + "\n"
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

func TestDeepNestingIsSkipped(t *testing.T) {
	const depth = 100_000
	text := `{"other":` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + `,"felt":"0x1"}`
	r := NewReader(strings.NewReader(text), 1<<20)
	if err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := readLetter(r); err != nil {
		t.Error(err)
	}
}
