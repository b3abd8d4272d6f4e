package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ashlar/app"
	"ashlar/family"
)

// TestStatusChangesNothing: without a server, status reads the stores and changes no file of them. So root can run it without
// making files that the server cannot read.
func TestStatusChangesNothing(t *testing.T) {
	d := newDataDirectory(t)
	makeStarknet(t, d.path, "l2")
	before := files(t, d.path)
	code, out := runCommand(t, d.status()...)
	if code != exitDone || !strings.Contains(out, "\na ") || !strings.Contains(out, "\nl2 ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if after := files(t, d.path); !maps.Equal(before, after) {
		t.Errorf("the files of the stores are now %v, they were %v", names(after), names(before))
	}
}

// TestStatusOfTheRest: a network that cannot be read is named with the reason, the others are shown, and
// the command fails.
func TestStatusOfTheRest(t *testing.T) {
	d := newDataDirectory(t)
	makeStarknet(t, d.path, "l2")
	letter := filepath.Join(d.network(), "letter.txt")
	if err := os.RemoveAll(d.network()); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.network(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(letter, []byte("Dear reader"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out := runCommand(t, d.status()...)
	if code != exitFailed {
		t.Errorf("exit code %d, expected %d", code, exitFailed)
	}
	for _, want := range []string{"\nl2 ", "\nnetwork a cannot be read: ", "letter.txt", "\nashlar: 1 of 2 networks cannot be read\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("the status does not have %q:\n%s", want, out)
		}
	}
	if !regexp.MustCompile(`(?m)^l2 .*\d:\d\d +\d+d(\d+h)? `).MatchString(out) {
		t.Errorf("the age of the block of 2023 is not in days:\n%s", out)
	}
	code, out = runCommand(t, append(d.status(), "--json")...)
	var status app.Status
	if err := json.NewDecoder(strings.NewReader(out)).Decode(&status); err != nil || code != exitFailed {
		t.Fatalf("exit code %d, %v:\n%s", code, err, out)
	}
	if len(status.Networks) != 1 || len(status.Unreadable) != 1 || status.Unreadable[0].Name != "a" {
		t.Errorf("the status is %+v", status)
	}
}

// TestStatusOfNothing: a data directory without networks has an empty list of them, which scripts can walk through.
func TestStatusOfNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "networks"), 0o700); err != nil {
		t.Fatal(err)
	}
	if code, out := runCommand(t, "status", "--data", dir, "--json"); code != 0 || !strings.Contains(out, `"networks": []`) {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	if code, out := runCommand(t, "status", "--data", dir); code != 0 || !strings.Contains(out, "\nno server answers; ") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// TestBehind: a network that does not come nearer to the head has no remaining time, not even 0s.
func TestBehind(t *testing.T) {
	for want, c := range map[string]family.CatchUp{
		"30 blocks behind; 7 blocks/s, 8s remaining": {Rate: 7, Remaining: 8},
		"30 blocks behind; 0 blocks/s":               {},
	} {
		if got := behind(30, &c); got != want {
			t.Errorf("got %q, expected %q", got, want)
		}
	}
}
