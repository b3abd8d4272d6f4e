package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ashlar/app/backup"
	"ashlar/app/store"
)

// The metrics have the last good backup of each store that exists, and what failed since.
func TestBackupMetrics(t *testing.T) {
	s, _ := served(t, nil)
	folder := t.TempDir()
	target, err := backup.OpenTarget(folder)
	if err != nil {
		t.Fatal(err)
	}
	demo := store.NetworkStore("demo")
	record := func(made *backup.Made, failed bool) (metrics string) {
		t.Helper()
		if err := backup.RecordOutcome(s.config.Data, target, []string{demo, store.NetworkStore("gone")}, made, failed); err != nil {
			t.Fatal(err)
		}
		_, metrics = get(t, "http://"+s.operator.listener.Addr().String()+"/metrics")
		if strings.Contains(metrics, "gone") {
			t.Error("a network that is not in the data directory has metrics")
		}
		return metrics
	}
	labels := fmt.Sprintf("{store=%q,target=%q} ", demo, folder)
	if got := record(nil, true); !strings.Contains(got, "ashlar_backup_failures"+labels+"1\n") || strings.Contains(got, "ashlar_backup_timestamp_seconds{") {
		t.Errorf("after a failure: %s", ofBackups(got))
	}
	made := &backup.Made{Stores: map[string]int64{demo: 4096}, Took: 1500 * time.Millisecond}
	if got := record(made, false); !strings.Contains(got, "ashlar_backup_failures"+labels+"0\n") || !strings.Contains(got, "ashlar_backup_timestamp_seconds"+labels+"1.") {
		t.Errorf("after a good one: %s", ofBackups(got))
	}
	got := record(made, false)
	if !strings.Contains(got, "ashlar_backups_total"+labels+"2\n") {
		t.Errorf("after two good ones: %s", ofBackups(got))
	}
	if !strings.Contains(got, "ashlar_backup_size_bytes"+labels+"4096\n") || !strings.Contains(got, "ashlar_backup_duration_seconds"+labels+"1.5\n") {
		t.Errorf("expected 4096 bytes in 1.5 seconds: %s", ofBackups(got))
	}
}

// A record that cannot be read has a metric, and is logged once until that changes, not at each scrape.
func TestUnreadableRecord(t *testing.T) {
	s, _ := served(t, nil)
	out := captureLog(t)
	record := filepath.Join(s.config.Data, "backup-0123456789abcdef.json")
	for _, step := range []struct {
		text     string
		readable int
		want     int // lines since the start
	}{{"{", 0, 1}, {"{", 0, 1}, {"[]", 0, 2}, {"[]", 0, 2}, {`{"target":"a"}`, 1, 2}, {"[]", 0, 3}} {
		if err := os.WriteFile(record, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, metrics := get(t, "http://"+s.operator.listener.Addr().String()+"/metrics")
		if want := fmt.Sprintf("ashlar_backup_records_readable %d\n", step.readable); !strings.Contains(metrics, want) {
			t.Errorf("after a record %s: %s, expected %s", step.text, ofBackups(metrics), want)
		}
		if got := strings.Count(out.String(), filepath.Base(record)); got != step.want {
			t.Fatalf("%d lines in the log after a record %s, expected %d:\n%s", got, step.text, step.want, out.String())
		}
	}
}

func ofBackups(metrics string) (lines string) {
	for line := range strings.Lines(metrics) {
		if strings.Contains(line, "backup") {
			lines += line
		}
	}
	return lines
}
