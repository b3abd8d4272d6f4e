package backup

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// A backup that lacks a content is damaged. The backup itself is there, so its name is not wrong.
func TestMissingContent(t *testing.T) {
	target := folder(t.TempDir())
	made := mustMake(t, target, source(t, "accounts", map[string]string{"1.log": "keys"}))
	m, err := Load(t.Context(), target, made.Name)
	if err == nil {
		err = os.Remove(target.path(object(m.Stores[0].Files[0].SHA256)))
	}
	if err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"Check": Check(t.Context(), target, m, new(Progress)), "Fetch": Fetch(t.Context(), target, m, t.TempDir(), new(Progress)),
	} {
		if !errors.Is(err, ErrDamaged) || errors.Is(err, ErrNoBackup) || !strings.Contains(err.Error(), "is missing") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
