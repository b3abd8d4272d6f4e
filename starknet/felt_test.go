package starknet

import (
	"math/big"
	"strings"
	"testing"
)

func TestFeltIsReadInAnyFormAndWrittenInOne(t *testing.T) {
	largest := new(big.Int).SetBytes(prime[:])
	largest.Sub(largest, big.NewInt(1))
	for _, test := range []struct{ text, want string }{
		{"0x0", "0x0"},
		{"0x00", "0x0"},
		{"0x1", "0x1"},
		{"0x10", "0x10"},
		{"0xAbC", "0xabc"},
		{"0x0abc", "0xabc"},
		{"0x" + strings.Repeat("0", 64), "0x0"},
		{"0x04c0a5193d58f74fbace4b74dcf65481e734ed1714121bdc571da345540efa05", "0x4c0a5193d58f74fbace4b74dcf65481e734ed1714121bdc571da345540efa05"},
		{"0x" + largest.Text(16), "0x" + largest.Text(16)},
	} {
		f, err := ParseFelt(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if f.String() != test.want {
			t.Errorf("%s: written as %s, expected %s", test.text, f, test.want)
		}
	}
}

func TestMalformedFeltsAreRefused(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"", "missing prefix 0x"},
		{"1", "missing prefix 0x"},
		{"0X1", "missing prefix 0x"},
		{"0x", "0 digits after 0x, expected 1 to 64"},
		{"0x" + strings.Repeat("0", 65), "65 digits after 0x, expected 1 to 64"},
		{"0x12g4", `character 5 is 'g', expected a hexadecimal digit`},
		{"0x1 ", `character 4 is ' ', expected a hexadecimal digit`},
		{prime.String(), "not below the field's prime"},
		{"0x" + strings.Repeat("f", 64), "not below the field's prime"},
	} {
		if f, err := ParseFelt(test.text); err == nil {
			t.Errorf("%q: read as %s", test.text, f)
		} else if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: the error lacks %q: %v", test.text, test.want, err)
		}
	}
}

func TestTextAsFelt(t *testing.T) {
	if got := FeltOfText("SN_MAIN").String(); got != "0x534e5f4d41494e" {
		t.Errorf("SN_MAIN is %s", got)
	}
}

func TestPrimeIsThatOfTheField(t *testing.T) {
	want := new(big.Int).Lsh(big.NewInt(1), 251)
	want.Add(want, new(big.Int).Lsh(big.NewInt(17), 192))
	want.Add(want, big.NewInt(1))
	if got := new(big.Int).SetBytes(prime[:]); got.Cmp(want) != 0 {
		t.Errorf("the prime is %x, expected %x", got, want)
	}
}

func FuzzParseFelt(f *testing.F) {
	for _, seed := range []string{"0x0", "0xAbC", "0x12g4", "0x" + strings.Repeat("f", 64), prime.String()} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		felt, err := ParseFelt(text)
		if err != nil {
			return
		}
		want, _ := new(big.Int).SetString(strings.TrimPrefix(text, "0x"), 16)
		if want == nil || felt.String() != "0x"+want.Text(16) {
			t.Fatalf("%q was read as %s", text, felt)
		}
	})
}
