package command

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ashlar/app/backup"
)

// TestRestoreListsBesideDamaged: if the newest manifest is damaged, a restore says how to choose another backup, and the list
// has the others.
func TestRestoreListsBesideDamaged(t *testing.T) {
	data, to := smallNetwork(t), t.TempDir()
	for range 2 {
		if err := (Backup{Data: data, To: to}).Run(t.Context(), os.Stderr); err != nil {
			t.Fatal(err)
		}
	}
	target, err := backup.OpenTarget(to)
	if err != nil {
		t.Fatal(err)
	}
	names, err := backup.Names(t.Context(), target)
	if err != nil || len(names) != 2 {
		t.Fatalf("backups %v, %v", names, err)
	}
	if err := os.Truncate(filepath.Join(to, "backups", names[1]+".json"), 10); err != nil {
		t.Fatal(err)
	}
	if err := (Restore{From: to, Data: t.TempDir()}).Run(t.Context(), os.Stderr); !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), "--backup NAME") {
		t.Errorf("restore of the newest: %v", err)
	}
	var table strings.Builder
	err = Restore{From: to}.List(t.Context(), &table)
	if !errors.Is(err, backup.ErrDamaged) || !strings.Contains(err.Error(), names[1]) || !strings.Contains(table.String(), names[0]) || strings.Contains(table.String(), names[1]) {
		t.Errorf("list: %v, %s", err, table.String())
	}
	if err := (Restore{From: to, Data: t.TempDir(), Backup: names[0]}).Run(t.Context(), os.Stderr); err != nil {
		t.Errorf("restore of the other: %v", err)
	}
}
