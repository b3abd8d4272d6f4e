package command

import (
	"log/slog"
	"os"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}

// logged returns what a command that succeeds logs.
func logged(t *testing.T, command func() error) string {
	t.Helper()
	var log strings.Builder
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	if err := command(); err != nil {
		t.Fatal(err)
	}
	return log.String()
}
