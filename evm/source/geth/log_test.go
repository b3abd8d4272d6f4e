package geth

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/log"
)

// Opening geth's directory shows the errors of go-ethereum's library, and leaves the log of the
// program as it is: an import goes on to say what it did.
func TestShowErrorsKeepsTheLog(t *testing.T) {
	before, library := slog.Default(), log.Root()
	t.Cleanup(func() {
		log.SetDefault(library)
		slog.SetDefault(before)
	})
	var out bytes.Buffer
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, nil)))
	showErrors()
	showErrors() // of a second directory
	slog.Info("state complete", "block", 7)
	log.Info("a line of the library")
	log.Error("a failure of the library", "file", "x")
	for _, want := range []string{`level=INFO msg="state complete" block=7`, `level=ERROR msg="geth's directory: a failure of the library" file=x`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "a line of the library") {
		t.Errorf("the log has a line of the library that is no error:\n%s", out.String())
	}
}
