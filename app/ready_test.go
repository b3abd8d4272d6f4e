package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"ashlar/app/config"
	"ashlar/family"
)

// fixed is a network that says what its test tells it to.
type fixed struct {
	family.Network
	status family.Status
}

func (f fixed) Status(context.Context) (family.Status, error) { return f.status, nil }

// TestNotReadySinceAnUnknownFork: a network that is behind because of a fork says so, and
// not before the fork has come.
func TestNotReadySinceAnUnknownFork(t *testing.T) {
	for name, test := range map[string]struct {
		fork *family.UnknownFork
		want string // at the end of the reason
	}{
		"no fork":      {nil, "expected at most 1m0s"},
		"a fork later": {&family.UnknownFork{Name: "Bogota", Time: time.Now().Add(time.Hour).Unix()}, "expected at most 1m0s"},
		"a fork since": {&family.UnknownFork{Name: "Bogota", Time: 1_700_000_000}, "expected at most 1m0s: the fork Bogota came at 2023-11-14T22:13:20Z, and this version does not know it; install a later version to get the blocks since"},
	} {
		s := &Service{networks: []*Network{{Name: "n", Network: fixed{status: family.Status{HeadTime: 1_600_000_000, UnknownFork: test.fork}}}}}
		err := s.ready(t.Context(), config.Config{Networks: map[string]config.Network{"n": {Behind: time.Minute}}})
		if err == nil || !strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q at the end", name, err, test.want)
		}
	}
}
