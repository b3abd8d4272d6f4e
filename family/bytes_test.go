package family

import "testing"

func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "1048576": 1 << 20, "7B": 7, "512KiB": 512 << 10, "64 MiB": 64 << 20, "2GiB": 2 << 30, "4294967296GiB": 1 << 62,
		"": -1, "MiB": -1, "-1": -1, "1MB": -1, "64MiB 32": -1, "64MiB,": -1, "1.5GiB": -1, "8589934592GiB": -1, "99999999999999999999": -1,
	} {
		got, err := ParseBytes(text)
		if err != nil {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, %v, want %d", text, got, err, want)
		}
	}
}
