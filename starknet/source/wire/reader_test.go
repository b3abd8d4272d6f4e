package wire

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"ashlar/starknet"
	"ashlar/strictjson"

	"github.com/ethereum/go-ethereum/common"
)

// letter is what the tests read: an object with an optional member of each kind.
type letter struct {
	felt  starknet.Felt
	felts []starknet.Felt
	hex   uint64
	hash  common.Hash
}

func read(text string) (l letter, err error) {
	r := NewReader(strings.NewReader(text), 2000)
	if err := r.Next(); err != nil {
		return l, err
	}
	err = r.Object(func(name string) (err error) {
		switch name {
		case "felt":
			l.felt, err = r.Felt()
		case "felts":
			l.felts, err = r.Felts()
		case "hex":
			l.hex, err = r.HexUint64()
		case "hash":
			l.hash, err = r.Hash()
		default:
			err = r.Skip()
		}
		return err
	})
	return l, err
}

func TestValuesAreRead(t *testing.T) {
	one := starknet.FeltOf(1)
	for _, test := range []struct {
		text string
		want letter
	}{
		{`{"felt":"0x1","other":{}}`, letter{felt: one}},
		{`{"felts":["0x1","0x01"],"hex":"0xffffffffffffffff"}`, letter{felts: []starknet.Felt{one, one}, hex: 1<<64 - 1}},
		{`{"felts":[]}`, letter{}},
		{`{"hash":"0xf"}`, letter{hash: common.Hash{31: 15}}},
		{`{"hash":"0xF` + strings.Repeat("0", 63) + `"}`, letter{hash: common.Hash{0: 0xf0}}},
	} {
		got, err := read(test.text)
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: read as %+v, %v, expected %+v", test.text, got, err, test.want)
		}
	}
}

func TestErrorsNameThePlace(t *testing.T) {
	for _, test := range []struct{ text, place, want string }{
		{`{"felt":null}`, "felt", "found null, expected a felt"},
		{`{"felt":"17"}`, "felt", "missing prefix 0x"},
		{`{"felts":["0x1","0x2","0xz"]}`, "felts[2]", "expected a hexadecimal digit"},
		{`{"felts":["0x1",null]}`, "felts[1]", "found null, expected a felt"},
		{`{"hex":"0x10000000000000000"}`, "hex", "expected a number below 2^64"},
		{`{"hash":17}`, "hash", "found the number 17, expected a hash"},
		{`{"hash":"0x"}`, "hash", "expected 0x and 1 to 64 hexadecimal digits"},
		{`{"hash":"0x` + strings.Repeat("1", 65) + `"}`, "hash", "expected 0x and 1 to 64 hexadecimal digits"},
		{`{"hash":"0xg"}`, "hash", "invalid byte"},
	} {
		_, err := read(test.text)
		var wrong *strictjson.Error
		if !errors.As(err, &wrong) || wrong.Place != test.place || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: the error is %v, expected %q at %q", test.text, err, test.want, test.place)
		}
	}
}
