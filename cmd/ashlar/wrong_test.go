package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWrongPlaces: a command that is given a wrong place names it, once, and says what it wants.
func TestWrongPlaces(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("nodir.yaml", []byte("data: file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	genesis, chain := tinyChain(t, "01")
	data := filepath.Join(dir, "data")
	if code, out := runCommand(t, "import", "--data", data, "--network", "a", "--genesis", genesis, chain); code != exitDone {
		t.Fatalf("exit code %d\n%s", code, out)
	}
	const noFolder = `ashlar: target "file" is not a directory (want a folder, or s3://BUCKET/PREFIX)`
	for args, want := range map[string]string{
		"backup --data data --to file":             noFolder,
		"restore --data new --from file":           noFolder,
		"restore --list --from file":               noFolder,
		"restore --list --from file/x":             strings.Replace(noFolder, "file", "file/x", 1),
		"backup --data file --to backups":          "ashlar: data directory file: not a directory",
		"verify --data file --network a":           "ashlar: network a: data directory file: not a directory",
		"network add --data nowhere a":             "ashlar: data directory nowhere: no such directory",
		"network add --data file a":                "ashlar: data directory file: not a directory",
		"join --data data --network a --from file": "ashlar: network a: --from: file: neither data nor store.cassandra is set (want the place of the stores)",
		"copy --from data --to file":               "ashlar: --to: file: neither data nor store.cassandra is set (want the place of the stores)",
		"copy --from data --to nodir.yaml":         "ashlar: --to: nodir.yaml: data directory file: not a directory",
		"account list --config nodir.yaml":         "ashlar: nodir.yaml: data directory file: not a directory",
	} {
		code, out := runCommand(t, strings.Fields(args)...)
		if code == exitDone || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit code %d\n%s\nexpected %s", args, code, out, want)
		}
	}
}
