package backup

import (
	"errors"
	"strings"
	"testing"
)

// A backup that lacks a content is damaged. The backup itself is there, so its name is not wrong.
func TestMissingContent(t *testing.T) {
	t.Run("folder", func(t *testing.T) { testMissingContent(t, folder(t.TempDir())) })
	t.Run("bucket", func(t *testing.T) {
		bucketServer(t)
		target, err := OpenTarget("s3://backups/deep")
		if err != nil {
			t.Fatal(err)
		}
		testMissingContent(t, target)
	})
}

func testMissingContent(t *testing.T, target Target) {
	made := mustMake(t, target, source(t, "accounts", map[string]string{"1.log": "keys"}))
	m, err := Load(t.Context(), target, made.Name)
	if err == nil {
		err = target.Remove(t.Context(), object(m.Stores[0].Files[0].SHA256))
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
