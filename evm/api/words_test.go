package api

import (
	"bytes"
	"strings"
	"testing"
)

// TestShorterLastWord: data that is no multiple of 32 bytes ends with what there is.
func TestShorterLastWord(t *testing.T) {
	for n, want := range map[int]string{0: `[]`, 3: `["0x010101"]`, 32: `["0x` + strings.Repeat("01", 32) + `"]`, 33: `["0x` + strings.Repeat("01", 32) + `","0x01"]`} {
		if got := string(appendWords(nil, bytes.Repeat([]byte{1}, n))); got != want {
			t.Errorf("%d bytes: %s, want %s", n, got, want)
		}
	}
}
