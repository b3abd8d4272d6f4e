package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ashlar/app"
	"ashlar/family"
)

// TestMeant checks the suggestions for commands and flags with typing errors.
func TestMeant(t *testing.T) {
	for args, want := range map[string]string{
		"improt":                   "did you mean import?",
		"key craete":               "did you mean create?",
		"serve --dta x":            "did you mean --data?",
		"status --josn":            "did you mean --json?",
		"config exmaple":           "did you mean example?",
		"--log-fromat json status": "did you mean --log-format?",
	} {
		root := commands()
		root.SetArgs(strings.Fields(args))
		if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ashlar %s: %v, expected %q", args, err, want)
		}
	}
	root := commands()
	root.SetArgs([]string{"abracadabra"})
	if err := root.ExecuteContext(t.Context()); err == nil || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("a word like no command: %v, expected an error without a suggestion", err)
	}
}

// TestProcessText checks the rates of ashlar status --watch, in a time that stands still.
func TestProcessText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		last := &earlier{app.Status{Process: &app.Process{Calls: 100, Failed: 10}}, time.Now().Add(-10 * time.Second)}
		now := &app.Process{Calls: 1100, Failed: 20, MemoryBytes: 3 << 20, FreeBytes: new(int64(5 << 30))}
		if got := processText(now, last); !strings.Contains(got, "3 MiB of memory, 5.0 GiB free") || !strings.Contains(got, "; 100.0 calls/s, 1.0 failed/s") {
			t.Errorf("got %q", got)
		}
		if got := processText(&app.Process{Calls: 1}, last); strings.Contains(got, "calls/s") || strings.Contains(got, "free") {
			t.Errorf("after a restart of the server: %q, expected no rates, and no free space, which is not known", got)
		}
		if got := processText(&app.Process{Calls: 1}, nil); !strings.HasPrefix(got, "server: 1 call, 0 failed, ") {
			t.Errorf("after one call: %q", got)
		}
		if got := processText(&app.Process{FreeBytes: new(int64)}, nil); !strings.Contains(got, " 0 MiB free") {
			t.Errorf("on a full disk: %q", got)
		}
		if got := processText(&app.Process{FreeBytes: new(int64(45 << 20))}, nil); !strings.Contains(got, " 45 MiB free") {
			t.Errorf("on a disk that is nearly full: %q", got)
		}
		if got := diskText(0) + diskText(5<<19); got != "-2.5 MiB" {
			t.Errorf("an unknown size and 2.5 MiB on the disk are %q", got)
		}
	})
}

// TestLastHeard checks what ashlar status says of a consensus client.
func TestLastHeard(t *testing.T) {
	for want, status := range map[string]family.ConsensusStatus{
		"which has sent nothing since the start": {},
		"last heard 1970-01-01 00:01:00":         {Payload: 60, Forkchoice: 50},
	} {
		if got := lastHeard(&status); got != want {
			t.Errorf("%+v: %q, expected %q", status, got, want)
		}
	}
}
