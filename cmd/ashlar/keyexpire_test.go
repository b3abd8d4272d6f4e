package main

import (
	"strings"
	"testing"
)

// A time of zero is in the past. It is not the same as no time.
func TestKeyExpiresAtOnce(t *testing.T) {
	s := shell{t, t.TempDir()}
	s.do(exitDone, "key", "create", "--name", "first", "--expires-in", "1h")
	for _, in := range []string{"0", "0h", "-1h"} {
		if out := s.do(exitFailed, "key", "expire", "first", "--in", in); !strings.Contains(out, "is in the past") {
			t.Errorf("--in %s: %s", in, out)
		}
	}
	if out := s.do(exitDone, "key", "list", "--json"); !strings.Contains(out, `"expires"`) {
		t.Errorf("the key never expires:\n%s", out)
	}
	s.do(exitDone, "key", "expire", "first")
	if out := s.do(exitDone, "key", "list", "--json"); strings.Contains(out, `"expires"`) {
		t.Errorf("without --in:\n%s", out)
	}
}

// An e-mail address names its account however it is written, as for commands of accounts.
func TestKeyOfAnyCase(t *testing.T) {
	s := shell{t, t.TempDir()}
	s.do(exitDone, "account", "create", "Boss@example.org")
	s.do(exitDone, "account", "limit", "Boss@example.org", "--keys", "5")
	s.do(exitDone, "key", "create", "--account", "Boss@example.org")
	s.do(exitDone, "key", "list", "--account", "BOSS@example.org")
}
