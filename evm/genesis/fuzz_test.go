package genesis

import (
	"bytes"
	"errors"
	"testing"

	"ashlar/internal/memory"
)

// parseFactor: an account without anything in it takes 50 bytes of the file.
const parseFactor = 256

// FuzzParse looks for files that make Parse panic or take more memory than they
// are worth, that it refuses without a line of theirs, or that it accepts although
// their block cannot be built.
func FuzzParse(f *testing.F) {
	f.Add([]byte(whole))
	f.Add([]byte(`{"config": {"chainId": 1}, "gasLimit": "1", "difficulty": 1, "alloc": {}, "baseFeePerGas": null}`))
	f.Add([]byte(`{"config": {"yolov2Block": [[{}]]}, "alloc": [`))
	f.Fuzz(func(t *testing.T, data []byte) {
		memory.Within(t, memory.Slack+parseFactor*len(data), func() { checkParse(t, data) })
		if g, _, err := Parse(data); err == nil {
			g.ToBlock()
		}
	})
}

func checkParse(t *testing.T, data []byte) {
	_, warnings, err := Parse(data)
	if len(warnings) > maxWarnings {
		t.Fatalf("%d warnings", len(warnings))
	}
	var field *FieldError
	if err != nil && (!errors.As(err, &field) || field.Line > 1+bytes.Count(data, []byte("\n"))) {
		t.Fatalf("%v, want a FieldError in a line that the file has", err)
	}
}
