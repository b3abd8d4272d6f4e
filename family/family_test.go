package family_test

import (
	"strings"
	"testing"

	evm "ashlar/evm/network"
	"ashlar/family"
	starknet "ashlar/starknet/network"
)

func all() family.Families { return family.Families{evm.Family{}, starknet.Family{}} }

func TestNamed(t *testing.T) {
	for name, want := range map[string]string{"": "evm", "evm": "evm", "starknet": "starknet"} {
		if f, err := all().Named(name); err != nil || f.Name() != want {
			t.Errorf("family %q: %v, %v, want %s", name, f, err, want)
		}
	}
	if _, err := all().Named("plasma"); err == nil || err.Error() != `unknown family "plasma" (want evm or starknet)` {
		t.Errorf("unknown family: %v", err)
	}
}

// The format of a store names its family, whatever its version.
func TestOfFormat(t *testing.T) {
	for format, want := range map[string]string{"ashlar-evm-1": "evm", "ashlar-evm-99": "evm", "ashlar-starknet-1": "starknet", "ashlar-plasma-1": "", "": "", "evm": ""} {
		f, ok := all().OfFormat(format)
		if ok != (want != "") || ok && f.Name() != want {
			t.Errorf("format %q: %v, %t, want %q", format, f, ok, want)
		}
	}
}

// An error about a source names it by its position: the URL may hold a key.
func TestSources(t *testing.T) {
	if err := (family.Sources{"http://a.test/secret", "https://b.test:1"}).Check("http", "https"); err != nil {
		t.Error(err)
	}
	for address, want := range map[string]string{
		"ws://a.test/secret":          "unknown scheme",
		"http://a.test:99999/secret":  "port 99999",
		"http:///secret":              "has no host",
		"http://a.test/secret\x7f":    "parse the URL",
		"http://a.test:secret/secret": "parse the URL",
	} {
		err := family.Sources{"http://a.test", address}.Check("http", "https")
		if err == nil || !strings.Contains(err.Error(), "number 2 of 2: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "/secret") {
			t.Errorf("%q: %v, want %q without the path", address, err, want)
		}
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[uint64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567"} {
		if got := family.Count(n); got != want {
			t.Errorf("%d is written %s, want %s", n, got, want)
		}
	}
	for n, want := range map[uint64]string{0: "0 blocks", 1: "1 block", 2: "2 blocks", 1000: "1,000 blocks"} {
		if got := family.Counted(n, "block"); got != want {
			t.Errorf("%d blocks are written %s, want %s", n, got, want)
		}
	}
}
