package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"plain äöü 漢字\ttext\n":      "plain äöü 漢字\ttext\n",
		"\x1b[31mred\x1b[0m\a\r":    `\u001b[31mred\u001b[0m\u0007\u000d`,
		"\u009b2J":                  `\u009b2J`,
		"evil\u202etxt.exe\u200b":   `evil\u202etxt.exe\u200b`,
		"broken \xff\xc2":           `broken \xff\xc2`,
		"tag \U000e0041 of no sign": `tag \udb40\udc41 of no sign`,
	} {
		var out strings.Builder
		if n, err := fmt.Fprint(printable{&out}, text); n != len(text) || err != nil || out.String() != want {
			t.Errorf("%q: %q, %d, %v; expected %q", text, out.String(), n, err, want)
		}
	}
	var out strings.Builder
	value := "a\u009bb\U000e0041"
	if err := json.NewEncoder(printable{&out}).Encode(value); err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal([]byte(out.String()), &back); err != nil || back != value || strings.ContainsRune(out.String(), '\u009b') {
		t.Errorf("%q is read as %q, %v", out.String(), back, err)
	}
}
